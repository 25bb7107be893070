"""The exact test of McNemar (1947): of pairs that pass on one side only, does one side have more than chance gives?"""

from __future__ import annotations

from math import exp, lgamma, log
from typing import NamedTuple


class McNemar(NamedTuple):
    """Pairs by who passes.

    Attributes:
        both, neither: pairs that say nothing.
        off_only, on_only: pairs that pass on one side only.
        p: two-sided; 1 where no pair passes on one side only.
    """

    both: int
    neither: int
    off_only: int
    on_only: int
    p: float


def mcnemar(off: list[bool], on: list[bool]) -> McNemar:
    """Test pairs of passed or not.

    Args:
        off, on: whether the pair passes, in the same order.
    """
    pairs = list(zip(off, on, strict=True))
    lost, won = pairs.count((True, False)), pairs.count((False, True))
    return McNemar(pairs.count((True, True)), pairs.count((False, False)), lost, won, exact_p(lost, won))


def exact_p(lost: int, won: int) -> float:
    """Two-sided p-value of a fair coin: twice the smaller tail, at most 1."""
    total = lost + won
    if not total:
        return 1.0
    logs = (
        lgamma(total + 1) - lgamma(k + 1) - lgamma(total - k + 1) - total * log(2) for k in range(min(lost, won) + 1)
    )
    return min(1.0, 2 * sum(map(exp, logs)))
