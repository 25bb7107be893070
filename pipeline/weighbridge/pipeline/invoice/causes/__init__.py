"""The causes of the second gap, one module each."""
