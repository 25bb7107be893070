"""What engines counted beside what their attempts add up to: the third reconciliation."""
