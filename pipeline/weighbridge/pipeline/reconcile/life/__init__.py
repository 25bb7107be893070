"""The life of findings: what became of each, what weighs, what is disputed, what is carried from month to month."""
