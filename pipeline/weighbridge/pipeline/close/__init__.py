"""Close: the frozen result of a month, and how anybody can recompute it."""
