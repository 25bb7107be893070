"""One answer by itself: does it repeat, how varied is it? On token ids, end token included.

Runs of ids are told apart by rank: the rank of a run of 2 k is that of the pair of its halves' ranks, so every
comparison is exact, and none is longer than one of two numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Ranks = npt.NDArray[np.uint64]
_HALF = np.uint64(32)


class Alone(NamedTuple):
    """What an answer is like.

    Attributes:
        length: ids.
        distinct_1, distinct_2: share of distinct ids and of distinct pairs of neighbours; null where there are none.
        rep_4: share of runs of four that stood before, 1 - distinct / all; null where there are none.
        longest_repeat: length of the longest run of ids that occurs twice (the two may overlap).
    """

    length: int
    distinct_1: float | None
    distinct_2: float | None
    rep_4: float | None
    longest_repeat: int


def alone(ids: Sequence[int]) -> Alone:
    """Measure one answer."""
    held = np.asarray(ids, dtype=np.uint64)
    ranks, distinct, length, longest = held, [], 1, 0
    while len(ranks):
        values, inverse = np.unique(ranks, return_inverse=True)
        distinct.append(len(values) / len(ranks))
        if len(values) == len(ranks):
            break
        ranks, longest = inverse.astype(np.uint64), length
        # Both halves of a run of twice the length, as one number.
        before, ranks = ranks, ranks[: max(0, len(ranks) - length)] << _HALF | ranks[length:]
        length *= 2
    if longest:
        longest = _longest(before, longest)
    shares = [distinct[at] if at < len(distinct) else None for at in range(3)]
    return Alone(len(held), *_filled(shares, len(held)), longest)


def _filled(shares: list[float | None], length: int) -> tuple[float | None, float | None, float | None]:
    """Once all runs of a length are distinct, all longer ones are; the last is told as what repeats."""
    one, two, four = (
        1.0 if share is None and length >= size else share for share, size in zip(shares, (1, 2, 4), strict=True)
    )
    return one, two, None if four is None else 1 - four


def _longest(ranks: Ranks, length: int) -> int:
    """The longest run that occurs twice, where runs of `length` (of these ranks) do and those of twice it may not."""
    low, high = length, min(2 * length - 1, len(ranks) + length - 2)
    while low < high:
        middle = (low + high + 1) // 2
        # A run of l <= 2 length is its first and its last `length` ids, which overlap.
        shift = middle - length
        joined = ranks[: len(ranks) - shift] << _HALF | ranks[shift:]
        joined.sort()
        if np.any(joined[1:] == joined[:-1]):
            low = middle
        else:
            high = middle - 1
    return low
