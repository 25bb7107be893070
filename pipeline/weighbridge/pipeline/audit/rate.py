"""By what share answers are billed too high: an interval that holds at every moment of a month at once.

Bets are made for a grid of rates. A rate is ruled out from below where the bet against "at most this much" has reached
2/alpha, from above where the mirrored one has; the interval is what is left between. The rate is the mean over answers
of gap / observed, each within -12.5 % and +12.5 %: so bounded, single answers that are far off move it little, and a
thousand answers tell tenths of a percent.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from weighbridge.pipeline.audit.process import BOLDEST, running
from weighbridge.pipeline.audit.scales import Floats, Ints, relative

RANGE = 0.125
_UPWARDS = (
    0.0001,
    0.0002,
    0.0005,
    0.001,
    0.0015,
    0.002,
    0.003,
    0.005,
    0.0075,
    0.01,
    0.015,
    0.02,
    0.03,
    0.05,
    0.075,
    0.1,
)
GRID: Floats = np.array([*(-rate for rate in reversed(_UPWARDS)), 0.0, *_UPWARDS])
_TINY = 1e-300


@dataclass(frozen=True, slots=True)
class Rate:
    """Where the interval of a cell stands.

    Attributes:
        seen: answers, sum and sum of squares of their rates in units of `RANGE`.
        above, below: logarithm of the bets that the rate is more, and less, than each rate of the grid.
        out_below, out_above: the greatest such logarithm so far.
    """

    seen: Floats
    above: Floats
    below: Floats
    out_below: Floats
    out_above: Floats

    @classmethod
    def start(cls) -> Rate:
        """Before the first answer."""
        zero = np.zeros(len(GRID))
        return cls(np.zeros(3), zero, zero, zero, zero)

    def further(self, gaps: Ints, sizes: Ints) -> Rate:
        """After some more answers, in the order of their arrival."""
        values = np.clip(relative(gaps, sizes) / RANGE, -1.0, 1.0)
        counts = self.seen[0] + np.arange(len(values) + 1, dtype=np.float64)
        sums, squares = running(self.seen[1], values), running(self.seen[2], values * values)
        paths = []
        for sign, begin in ((1.0, self.above), (-1.0, self.below)):
            m = (sign * GRID / RANGE)[:, None]
            drift = sign * sums[:-1] - counts[:-1] * m
            spread = squares[:-1] - 2.0 * m * sign * sums[:-1] + counts[:-1] * m * m
            stake = np.clip(drift / np.maximum(spread, _TINY), 0.0, BOLDEST / (1.0 + m))
            paths.append(running(begin, np.log1p(stake * (sign * values - m))))
        above, below = paths
        return Rate(
            np.array([counts[-1], sums[-1], squares[-1]]),
            above[:, -1],
            below[:, -1],
            np.maximum(self.out_below, above.max(axis=-1)),
            np.maximum(self.out_above, below.max(axis=-1)),
        )

    def interval(self, alpha: float) -> tuple[float, float]:
        """Lower and upper bound of the rate; the ends of its range where nothing is ruled out."""
        line = math.log(2.0 / alpha)
        lower = np.logical_and.accumulate(self.out_below >= line)
        upper = np.logical_and.accumulate((self.out_above >= line)[::-1])
        return (
            float(GRID[lower.sum() - 1]) if lower[0] else -RANGE,
            float(GRID[len(GRID) - upper.sum()]) if upper[0] else RANGE,
        )
