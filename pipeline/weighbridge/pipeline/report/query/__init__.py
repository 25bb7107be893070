"""Questions put to a view of the lake; each answer is a sheet of exact values."""
