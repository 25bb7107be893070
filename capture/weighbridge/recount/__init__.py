"""Text to counts, with a tokenizer and a chat template. Used beside the server and by ingest."""
