"""Probes: fixed prompts sent to an endpoint, one thing added at a time, each weighed by usage, recount and engine."""
