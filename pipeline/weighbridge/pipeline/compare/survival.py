"""When do two answers part? A survival curve of the first divergence (Kaplan and Meier, 1958).

After the first different id, free-running answers go their own ways and are not comparable place by place. Answers that
are equal to the end did not part as far as anybody looked: they are censored at their length, not counted as surviving
for ever.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple


class Step(NamedTuple):
    """The curve from this place on.

    Attributes:
        at: 0-based place of the first different id.
        at_risk: pairs that were equal up to there, and looked at.
        parted: of these, pairs that part there.
        share: of all pairs, how many are still equal behind it.
    """

    at: int
    at_risk: int
    parted: int
    share: float


def survival(divergences: Iterable[tuple[int, bool]]) -> tuple[Step, ...]:
    """The curve: one step for each place where pairs part, in order.

    Args:
        divergences: per pair the length of the common beginning, and whether the pair parts there (else it ends).
    """
    parted: Counter[int] = Counter()
    ended: Counter[int] = Counter()
    for at, parts in divergences:
        (parted if parts else ended)[at] += 1
    at_risk = parted.total() + ended.total()
    share, steps = 1.0, []
    for at in sorted({*parted, *ended}):
        if parted[at]:
            share *= 1 - parted[at] / at_risk
            steps.append(Step(at, at_risk, parted[at], share))
        at_risk -= parted[at] + ended[at]  # a pair that ends at a place was at risk there
    return tuple(steps)


def share_at(steps: Iterable[Step], place: int) -> float:
    """The share of pairs still equal behind `place`."""
    share = 1.0
    for step in steps:
        if step.at > place:
            break
        share = step.share
    return share


def median(steps: Iterable[Step]) -> int | None:
    """The first place behind which at most half of the pairs are still equal; null where the curve stays above."""
    return next((step.at for step in steps if step.share <= 0.5), None)
