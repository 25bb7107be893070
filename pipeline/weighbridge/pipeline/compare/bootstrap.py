"""Paired intervals by resampling: bias-corrected and accelerated (BCa, Efron 1987), whole clusters at a time.

The statistic is the mean of paired differences. Clusters (tasks, sessions) are drawn whole, for answers of one cluster
are not independent. The p-value of a bound is the level at which a one-sided BCa interval would end there.

Where all differences, or the means of all clusters, are the same, resampling shows no spread, whatever is true. For
measures from 0 to 1 the rule of the binomial then says how often a full loss can have gone unseen, and that is the
bound; for others there is none.

What decides is held to more than one limit, for BCa alone lets through too many that lose just the margin where few
pairs lose much: a bound has to be outside of the studentised interval as well, and of pairs that pass or not the score
test of Tango decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

import numpy as np
import numpy.typing as npt

from weighbridge.pipeline.compare.drawing import drawn
from weighbridge.pipeline.compare.passes import Passes, passes
from weighbridge.pipeline.compare.studentised import NONE, Studentised, studentised

Reals = npt.NDArray[np.float64]
RESAMPLES: Final = 2_000
_NORMAL: Final = NormalDist()
# Below so many clusters BCa calls some differences sure too often, in either direction.
_FEW: Final = 200


@dataclass(frozen=True, slots=True)
class Paired:
    """The mean of paired differences.

    Attributes:
        pairs, clusters: how many.
        mean: of the differences; null where there are no pairs.
        low, high: limits of the interval; null where fewer than two clusters, or nothing to resample, leave it open.
        level: of the interval, two-sided.
        draws: means of the resamples in ascending order; empty where there is no spread.
        bias, acceleration: of BCa.
        worst: what a pair can lose at most, null where that is not bounded.
        ratios: the studentised means of the resamples, where they were asked for.
        passes: pairs that differ by one or not at all; null where others do, or pairs are not independent.
    """

    pairs: int
    clusters: int
    mean: float | None
    low: float | None
    high: float | None
    level: float
    draws: Reals
    bias: float = 0.0
    acceleration: float = 0.0
    worst: float | None = None
    ratios: Studentised = NONE
    passes: Passes | None = None

    def p_below(self, bound: float) -> float | None:
        """How compatible the data are with a mean of at most `bound`: small means the mean is above it."""
        if self.mean is None or self.low is None:
            return None
        if not len(self.draws):
            return self._unseen(bound) if bound < self.mean else 1.0
        return self._level_at(bound)

    def p_above(self, bound: float) -> float | None:
        """How compatible the data are with a mean of at least `bound`: small means the mean is below it."""
        if self.mean is None or self.low is None:
            return None
        if not len(self.draws):
            return self._unseen(bound) if bound > self.mean else 1.0
        return 1.0 - self._level_at(bound)

    @property
    def limits(self) -> tuple[float | None, float | None]:
        """The interval as it decides: the wider of both, or of pairs that pass or not that of the score."""
        if self.mean is None or self.low is None or self.high is None:
            return self.low, self.high
        if self.passes is not None:
            return self.passes.limits((1 - self.level) / 2)
        if not len(self.ratios.draws):
            return self.low, self.high
        low, high = self.ratios.limits(self.mean, (1 - self.level) / 2)
        return min(low, self.low), max(high, self.high)

    def p_zero(self) -> float | None:
        """How compatible the data are with no difference, two-sided."""
        below, above = self.p_below(0.0), self.p_above(0.0)
        return None if below is None or above is None else min(1.0, 2 * min(below, above))

    def p_not_below(self, bound: float) -> float | None:
        """As `p_below`, for what decides: the least sure of all limits.

        It is no less than the chance that full losses as frequent as the bound allows never showed. Of resamples of
        few pairs, none has a loss that no pair has: a single pair that differs a little must not make sure what as
        many equal ones leave open.
        """
        p = self.p_below(bound)
        if p is None or self.mean is None:
            return p
        if self.passes is not None:
            p = self.passes.p_below(bound)
        elif len(self.ratios.draws):
            p = max(p, self.ratios.p_below(self.mean - bound))
        return p if self.worst is None else max(p, self._unseen(bound))

    def p_not_above(self, bound: float) -> float | None:
        """As `p_above`, likewise: for what is worse where there is more of it."""
        p = self.p_above(bound)
        if p is None or self.mean is None:
            return p
        if self.passes is not None:
            p = self.passes.turned().p_below(-bound)
        elif len(self.ratios.draws):
            p = max(p, self.ratios.p_above(self.mean - bound))
        return p if self.worst is None else max(p, self._unseen(bound))

    def p_beyond_below(self, bound: float) -> float | None:
        """Small: the mean is below the bound for sure, which is how a loss beyond a margin is told."""
        p = self.p_above(bound)
        if p is None or self.mean is None:
            return p
        if self.passes is not None:
            return self.passes.p_above(bound)
        return max(p, self.ratios.p_above(self.mean - bound)) if self._few() else p

    def p_beyond_above(self, bound: float) -> float | None:
        """Small: the mean is above the bound for sure; for what is worse where there is more of it."""
        p = self.p_below(bound)
        if p is None or self.mean is None:
            return p
        if self.passes is not None:
            return self.passes.turned().p_above(-bound)
        return max(p, self.ratios.p_below(self.mean - bound)) if self._few() else p

    def _few(self) -> bool:
        return self.clusters < _FEW and len(self.ratios.draws) > 0

    def _unseen(self, bound: float) -> float:
        """The chance that pairs which differ so much at most never showed."""
        assert self.mean is not None
        if self.worst is None:
            return 0.0
        share = min(1.0, abs(bound - self.mean) / self.worst)
        return float((1 - share) ** self.clusters)

    def _level_at(self, bound: float) -> float:
        """The level whose BCa limit is `bound`; kept off 0 and 1 by one resample.

        Limits are places among the resamples: a bound that none of them reaches is outside of every interval.
        """
        many = len(self.draws)
        below = int(np.searchsorted(self.draws, bound, "left"))
        equal = int(np.searchsorted(self.draws, bound, "right")) - below
        if below + equal == 0 or below == many:
            return 1 / (many + 1) if below == 0 else many / (many + 1)
        share = min(max((below + equal / 2) / many, 1 / (many + 1)), many / (many + 1))
        distance = _NORMAL.inv_cdf(share) - self.bias
        scaled = 1 + self.acceleration * distance
        if scaled <= 0:  # beyond where the correction can reach
            return share
        return min(max(_NORMAL.cdf(distance / scaled - self.bias), 1 / (many + 1)), many / (many + 1))


def paired(
    differences: Sequence[float],
    clusters: Sequence[str | None] | None = None,
    *,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
    worst: float | None = None,
    decides: bool = False,
) -> Paired:
    """Mean and interval of paired differences.

    Args:
        differences: one per pair.
        clusters: the cluster of each; a pair without one is a cluster of its own.
        level: of the two-sided interval.
        resamples: how many.
        seed: the same seed gives the same interval.
        worst: what a pair can lose at most (1 for shares); null where that is not bounded.
        decides: whether a judgement hangs on it, so that it is held to further limits than BCa.
    """
    values = np.asarray(differences, dtype=np.float64)
    if not len(values):
        return Paired(0, 0, None, None, None, level, np.empty(0), worst=worst)
    sums, sizes = _clustered(values, clusters)
    mean = float(values.sum() / len(values))
    many = len(sums)
    if many < 2:
        return Paired(len(values), many, mean, None, None, level, np.empty(0), worst=worst)
    if np.all(values == values[0]) or np.all(sums / sizes == sums[0] / sizes[0]):
        reach = 0.0 if worst is None else (1 - ((1 - level) / 2) ** (1 / many)) * worst
        limits = (mean - reach, mean + reach)
        return Paired(len(values), many, mean, *limits, level, np.empty(0), worst=worst)
    draws, spreads = _draws(sums, sizes, resamples, seed, spreads=decides)
    below = (np.count_nonzero(draws < mean) + np.count_nonzero(draws == mean) / 2) / resamples
    bias = _NORMAL.inv_cdf(min(max(below, 1 / (resamples + 1)), resamples / (resamples + 1)))
    acceleration = _acceleration(sums, sizes)
    low, high = (
        float(np.quantile(draws, _adjusted(tail, bias, acceleration))) for tail in ((1 - level) / 2, (1 + level) / 2)
    )
    ratios = studentised(sums - mean * sizes, sizes, draws - mean, spreads) if decides else NONE
    told = passes(values) if decides and worst is not None and many == len(values) else None
    draws.sort()
    return Paired(len(values), many, mean, low, high, level, draws, bias, acceleration, worst, ratios, told)


def _clustered(values: Reals, clusters: Sequence[str | None] | None) -> tuple[Reals, Reals]:
    """Per cluster the sum of its differences, and how many there are."""
    if clusters is None:
        return values, np.ones(len(values))
    names = [f"\0{at}" if name is None else name for at, name in enumerate(clusters)]
    _, where = np.unique(np.asarray(names, dtype=object).astype(str), return_inverse=True)
    sums = np.bincount(where, weights=values).astype(np.float64)
    return sums, np.bincount(where).astype(np.float64)


def _draws(sums: Reals, sizes: Reals, resamples: int, seed: int, *, spreads: bool) -> tuple[Reals, Reals]:
    """Means of resamples, and where they are asked for their standard errors; in the order they were drawn."""
    many = len(sums)
    mean = sums.sum() / sizes.sum()
    rests = sums - mean * sizes  # about the mean, so that squares do not swallow one another
    columns = [sums, sizes, *((rests**2, rests * sizes, sizes**2) if spreads else ())]
    out, *squares = drawn(np.column_stack(columns), resamples, seed).T
    totals = squares[0]
    out = out / totals
    if not spreads:
        return out, np.empty(0)
    moves = out - mean
    spread = squares[1] - 2 * moves * squares[2] + moves**2 * squares[3]
    return out, np.sqrt(np.maximum(spread, 0.0) * many / (many - 1)) / totals


def _acceleration(sums: Reals, sizes: Reals) -> float:
    """From the means without one cluster each."""
    left = sizes.sum() - sizes
    if not left.all():
        return 0.0
    means = (sums.sum() - sums) / left
    off = means.mean() - means
    spread = float((off**2).sum())
    return float((off**3).sum()) / (6 * spread**1.5) if spread > 0 else 0.0


def _adjusted(tail: float, bias: float, acceleration: float) -> float:
    distance = bias + _NORMAL.inv_cdf(tail)
    scaled = 1 - acceleration * distance
    return tail if scaled <= 0 else _NORMAL.cdf(bias + distance / scaled)
