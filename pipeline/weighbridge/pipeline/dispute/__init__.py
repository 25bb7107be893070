"""Dispute: all that backs one finding, in a folder that its receiver can check without us."""
