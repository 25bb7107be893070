"""Retention: what is kept how long, and the proof that the rest is gone."""
