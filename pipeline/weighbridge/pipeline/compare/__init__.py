"""Runs with a strategy off and on, compared on token ids: what it saves, what it costs in quality, which one to use."""
