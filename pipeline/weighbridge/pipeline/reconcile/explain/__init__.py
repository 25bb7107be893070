"""From a gap to its causes, to the last token."""
