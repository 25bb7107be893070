"""Ingest: files in, rows of the vocabulary out; usage reports are read by dialects."""
