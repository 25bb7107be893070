"""Whole numbers in order, many at a time: runs of them, and columns of them."""
