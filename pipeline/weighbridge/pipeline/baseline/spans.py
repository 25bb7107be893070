"""Sums over spans of days, for every cell and day at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
# Days that are looked at as one, beside the day alone: how a small shift comes to light.
TOGETHER = 5
FEWEST_TOGETHER = 3


def running(values: NDArray[np.bool_] | Floats) -> Floats:
    """Cell x day: the sum over the day and the four before it."""
    out = np.zeros(values.shape)
    for back in range(min(TOGETHER, values.shape[1])):
        out[:, back:] += values[:, : values.shape[1] - back]
    return out


def preceding(values: NDArray[np.bool_ | np.int64 | np.float64], days: int) -> Floats:
    """Cell x day: the sum over so many days before the day, as far as there are any."""
    total = np.concatenate([np.zeros((len(values), 1)), np.cumsum(values, axis=1, dtype=np.float64)], axis=1)
    end = np.arange(values.shape[1])
    found: Floats = total[:, end] - total[:, np.maximum(end - days, 0)]
    return found
