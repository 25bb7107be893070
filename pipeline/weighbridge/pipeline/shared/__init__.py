"""Shared: aggregates that may be shown to everybody: binned, and none of fewer than eleven."""
