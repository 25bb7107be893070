"""Sums and percentiles of rows in groups that are numbers."""
