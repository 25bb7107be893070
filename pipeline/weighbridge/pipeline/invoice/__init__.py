"""Invoices: what providers charge, held against what our own priced usage says they should."""
