"""Baseline: what is usual for a cell, with limits whose false-alarm rate is promised."""
