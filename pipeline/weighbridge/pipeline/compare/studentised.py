"""The studentised bootstrap (Efron 1979; Hall 1988): each resample's mean in units of its own standard error.

Few large losses make the mean of a sample and its spread go together: samples that miss them look better and surer than
they are. Ratios to the resample's own error carry that, where resampled means alone do not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

Reals = npt.NDArray[np.float64]
_FLAT: Final = 1e-6  # of the sample's error: less spread than that comes from rounding


@dataclass(frozen=True, slots=True)
class Studentised:
    """Resampled means over their standard errors.

    Attributes:
        error: standard error of the mean itself.
        draws: (mean of a resample - mean) / its error, in ascending order.
    """

    error: float
    draws: Reals

    def p_below(self, distance: float) -> float:
        """How compatible the data are with a mean that lies `distance` lower; small means it is above that."""
        return self._share(int(np.searchsorted(-self.draws[::-1], -self._ratio(distance), "right")))

    def limits(self, mean: float, tail: float) -> tuple[float, float]:
        """The interval that leaves out so much on either side."""
        low, high = np.quantile(self.draws, (tail, 1 - tail))
        return mean - float(high) * self.error, mean - float(low) * self.error

    def p_above(self, distance: float) -> float:
        """Likewise of one that lies `-distance` higher."""
        return self._share(int(np.searchsorted(self.draws, self._ratio(distance), "right")))

    def _ratio(self, distance: float) -> float:
        return distance / self.error

    def _share(self, beyond: int) -> float:
        return (beyond + 1) / (len(self.draws) + 1)


NONE: Final = Studentised(0.0, np.empty(0))


def studentised(residuals: Reals, sizes: Reals, moves: Reals, errors: Reals) -> Studentised:
    """Of a sample and its resamples.

    Args:
        residuals: per cluster its sum less what the mean would give it.
        sizes: of the clusters.
        moves: means of resamples less the mean.
        errors: their standard errors, in the same order.
    """
    many = len(residuals)
    error = float(np.sqrt((residuals**2).sum() * many / (many - 1)) / sizes.sum())
    if error <= 0:
        return NONE
    # A resample without spread has no ratio of its own. What it may hide another rule tells: the sample's error stands.
    draws = moves / np.where(errors <= _FLAT * error, error, errors)
    draws.sort()
    return Studentised(error, draws)
