"""Validate: every batch is held to the contract of the vocabulary before anything is computed from it."""
