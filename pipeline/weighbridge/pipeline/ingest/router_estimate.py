"""What a router guessed of the cache, beside what the engine counted: the exact count stays, the guess is judged.

A router that sends requests to the engine with the longest cached prefix knows whole blocks only. Rounded either way,
its guess is less than a block off; anything further off is no rounding.

    6 blocks of 16, exact 90   ->   96 - 90 = 6 < 16, accepted
    6 blocks of 16, exact 50   ->   96 - 50 = 46, flagged
"""

from __future__ import annotations

from collections.abc import Mapping

CACHE_COUNT_MISMATCH = "cache_count_mismatch"
ROUTER, BLOCK = "router_overlap_blocks", "block_size"


def off_by(context: Mapping[str, object], cache_read: int | None) -> int | None:
    """Guess less exact count, in tokens; null where either is not there.

    Args:
        context: `router_overlap_blocks` and `block_size`, whole numbers.
        cache_read: what the engine counted.
    """
    blocks, size = _whole(context.get(ROUTER)), _whole(context.get(BLOCK))
    return None if blocks is None or not size or cache_read is None else blocks * size - cache_read


def judged(context: Mapping[str, object], cache_read: int | None) -> tuple[str, ...]:
    """The flag of a guess that is a block or more off, or none."""
    off, size = off_by(context, cache_read), _whole(context.get(BLOCK))
    return (CACHE_COUNT_MISMATCH,) if off is not None and size and abs(off) >= size else ()


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
