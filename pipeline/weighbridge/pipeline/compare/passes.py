"""Pairs that pass or not: tests that the share lost is inside or beyond a margin.

Resampling few pairs of which two or three differ says little of how often they do. The score test of Tango (Statistics
in Medicine 17, 1998) takes its variance from the margin that is tested and not from the sample; worked out exactly, it
passes a loss of the margin in at most 2.6 % of samples of 30 to 400 pairs where 2.5 % are meant.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, lgamma, log, log1p, sqrt
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

_NORMAL = NormalDist()
_STEPS = 40  # halvings of the range of shares: more digits than a number has to show


@dataclass(frozen=True, slots=True)
class Passes:
    """Independent pairs, of which some pass on one side only.

    Attributes:
        pairs: all of them.
        lost, won: that pass with the baseline, with the strategy only.
    """

    pairs: int
    lost: int
    won: int

    def turned(self) -> Passes:
        """With lost and won exchanged."""
        return Passes(self.pairs, self.won, self.lost)

    def p_below(self, bound: float) -> float:
        """How compatible they are with a share won less lost of at most `bound`; small means it is above."""
        return 1 - _NORMAL.cdf(self.score(bound))

    def p_above(self, bound: float) -> float:
        """How compatible they are with one of at least `bound`; no less than chance gives to so many lost ones.

        The score alone is too sure of few losses; where none is won the binomial is exact.
        """
        allowed = min(1.0, max(0.0, self.won / self.pairs - bound))
        return max(_NORMAL.cdf(self.score(bound)), at_least(self.lost, self.pairs, allowed))

    def limits(self, tail: float) -> tuple[float, float]:
        """Shares won less lost that the score leaves open; it falls as the share it is held against grows."""
        z = _NORMAL.inv_cdf(1 - tail)
        return self._where(z), self._where(-z)

    def _where(self, score: float) -> float:
        low, high = -1.0, 1.0
        for _ in range(_STEPS):
            middle = (low + high) / 2
            low, high = (middle, high) if self.score(middle) > score else (low, middle)
        return (low + high) / 2

    def score(self, bound: float) -> float:
        """Tango's statistic, standard normal where the share won less lost is `bound`; 0 < |bound| < 1."""
        n = self.pairs
        double = 2 * n
        linear = -self.won - self.lost + (double - self.won + self.lost) * bound
        rest = -self.lost * bound * (1 - bound)
        lost = (sqrt(max(0.0, linear * linear - 4 * double * rest)) - linear) / (2 * double)
        variance = n * (2 * lost + bound * (1 - bound))
        over = self.won - self.lost - n * bound
        # Without variance every pair is won, or lost, as the bound says; nothing else is compatible with it.
        return over / sqrt(variance) if variance > 0 else 0.0 if over == 0 else float("inf") * over


def passes(differences: npt.NDArray[np.float64]) -> Passes | None:
    """Differences that are -1, 0 or 1 as pairs that pass or not; null where one is not."""
    lost, won = int(np.count_nonzero(differences == -1)), int(np.count_nonzero(differences == 1))
    same = int(np.count_nonzero(differences == 0))
    return Passes(len(differences), lost, won) if lost + won + same == len(differences) else None


def at_least(count: int, of: int, share: float) -> float:
    """The chance of so many or more out of `of`, each with this share."""
    if count <= 0 or share >= 1:
        return 1.0
    if share <= 0:
        return 0.0
    told = (
        lgamma(of + 1) - lgamma(k + 1) - lgamma(of - k + 1) + k * log(share) + (of - k) * log1p(-share)
        for k in range(count, of + 1)
    )
    return min(1.0, sum(map(exp, told)))
