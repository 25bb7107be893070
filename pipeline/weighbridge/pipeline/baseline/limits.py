"""Order statistics as limits: a promise about new rows that holds whatever the distribution of the rows is.

Of n exchangeable rows let U be the one of rank k = ceil((n + 1)(1 - rate)). The next row lies above U with a chance of
at most `rate`. Fewer than 1/rate - 1 rows have no such rank: then there is no limit, and no alarm.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import polars as pl
from numpy.typing import NDArray

from weighbridge.pipeline.baseline.history import SCALE, Ints, Mask, Small

_SIGN = 2**31
REFUSED = np.iinfo(np.int64).max  # a limit that nothing exceeds, because there is none


@dataclass(frozen=True, slots=True)
class Ordered:
    """Scores of every cell in rising order.

    Attributes:
        values: the scores, cell after cell.
        starts, sizes: where each cell's lie.
    """

    values: Ints
    starts: Ints
    sizes: Ints

    def ranked(self, rank: Ints) -> Ints:
        """Per cell the score of that rank, from 1; REFUSED where it has no such rank."""
        has = (rank >= 1) & (rank <= self.sizes)
        if not len(self.values):
            return np.full(len(self.sizes), REFUSED)
        return np.where(has, self.values[np.where(has, self.starts + rank - 1, 0)], REFUSED)

    def upper(self, rate: Fraction) -> Ints:
        """Per cell the limit that a new row exceeds with a chance of at most `rate`."""
        return self.ranked(rank_of(self.sizes, rate))

    def lower(self, rate: Fraction) -> Ints:
        """Per cell the limit that a new row falls below with a chance of at most `rate`; by symmetry."""
        rank = rank_of(self.sizes, rate)
        return self.ranked(np.where(rank <= self.sizes, self.sizes + 1 - rank, 0))

    def median(self) -> Ints:
        """Per cell the median, the lower one of two; REFUSED where it has no rows."""
        return self.ranked((self.sizes + 1) // 2)

    def spread(self) -> NDArray[np.float64]:
        """Per cell the standard deviation a normal distribution with these quartiles has; NaN where it has no rows."""
        low, high = self.ranked(np.maximum(self.sizes // 4, 1)), self.ranked(np.maximum(3 * self.sizes // 4, 1))
        return np.where(self.sizes > 0, (high - low) / 1.349, np.nan)


def ordered(series: Small, score: Small, cells: int) -> Ordered:
    """Sort the scores of every cell.

    Args:
        series: per row its cell, from 0.
        score: per row its score.
        cells: how many cells there are.
    """
    packed = pl.Series((series.astype(np.int64) << 32) | (score.astype(np.int64) + _SIGN)).sort().to_numpy()
    sizes = np.bincount(series, minlength=cells)
    return Ordered((packed & 0xFFFFFFFF) - _SIGN, np.cumsum(sizes) - sizes, sizes)


def ordered_twice(series: Small, score: Small, first: int, cells: int) -> tuple[Ordered, Ordered]:
    """Sort the scores of every cell once: those of all rows, and those of the first rows alone.

    Args:
        series, score: as of `ordered`.
        first: how many rows are the first ones.
        cells: how many cells there are.
    """
    keys = (series.astype(np.int64) << 33) | (score.astype(np.int64) + _SIGN << 1)
    keys[first:] |= 1
    packed = pl.Series(keys).sort().to_numpy()
    alone = packed[np.flatnonzero((packed & 1) == 0)]

    def found(keys: Ints, series: Small) -> Ordered:
        sizes = np.bincount(series, minlength=cells)
        return Ordered((keys >> 1 & 0xFFFFFFFF) - _SIGN, np.cumsum(sizes) - sizes, sizes)

    return found(packed, series), found(alone, series[:first])


def rank_of(rows: Ints, rate: Fraction) -> Ints:
    """k = ceil((n + 1)(1 - rate)), in whole numbers; more than n where there are too few rows for the rate."""
    return rows + 1 - (rows + 1) * rate.numerator // rate.denominator


def above(series: Small, score: Small, limit: Ints, cells: int) -> Ints:
    """Per cell how many of the rows lie above its limit."""
    return np.bincount(series[np.flatnonzero(score > limit[series])], minlength=cells)


def tokens_at(y: NDArray[np.float64] | Ints, known: Mask) -> Ints:
    """Units of y as tokens, rounded; UNKNOWN tokens (-1) where they are not known."""
    value = np.expm1(np.where(known, y, 0) / SCALE)
    return np.where(known, np.rint(np.clip(value, 0.0, 2.0**53)), -1).astype(np.int64)
