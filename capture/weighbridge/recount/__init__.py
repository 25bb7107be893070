"""Text to counts with a tokenizer and a chat template, and the fingerprints of both. No framework is loaded here."""
