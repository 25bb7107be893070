"""Explain: why a figure is what it is, from the page down to the raw leaves and their row in a file."""
