"""What a figure of one attempt can be at most."""

from __future__ import annotations

# No attempt has more tokens. Below it, the sums of four million attempts fit into 64 bits; above it, a figure is kept
# as evidence and said to be implausible, but nothing is added to it.
LARGEST = 2**40
# Nor does any take longer than some 35 years, in microseconds: nobody knows the end of one that is said to.
LONGEST_US = 2**50
