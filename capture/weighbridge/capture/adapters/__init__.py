"""Adapters: each module watches one framework and declares one `ADAPTER`."""
