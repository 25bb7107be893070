"""Attempts beside their usage reports: who belongs to whom, what is missing, what nobody saw."""
