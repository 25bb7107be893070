"""Rank correlation: do two things grow together, whatever their scales?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Spearman's, with mean ranks of ties; null where one side does not vary."""
    ranks = [_ranks(np.asarray(side, dtype=np.float64)) for side in (first, second)]
    if any(np.all(side == side[0]) for side in ranks):
        return None
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])


def _ranks(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    _, where, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return np.asarray((ends - (counts - 1) / 2)[where], dtype=np.float64)
