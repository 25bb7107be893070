"""Sums over spans of days, for every cell and day at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
# Days that are looked at as one, beside the day alone: how a small shift comes to light.
TOGETHER = 5
FEWEST_TOGETHER = 3


# Of the five days' mean excess, today has to have this part: days that are high because others were are no news.
_NEWS = 0.5


def whole_score(alone: Floats, together: Floats, days: Floats) -> Floats:
    """The larger of a day's score and that of its five days, as far as the latter is also the day's doing.

    Args:
        alone: cell x day: scores of each day.
        together: cell x day: scores of the five days up to each.
        days: cell x day: how many of these have rows.
    """
    part = _NEWS * together / np.sqrt(np.maximum(days, 1))
    counts = (days >= FEWEST_TOGETHER) & (alone > 0) & (alone >= part)
    return np.where(counts, np.maximum(alone, together), alone)


def still_high(rate: float, today: Floats, recent: Floats) -> NDArray[np.bool_]:
    """Whether today's share lies above a rate, by at least half as much as that of the last five days."""
    found: NDArray[np.bool_] = (today > rate) & (today - rate >= _NEWS * (recent - rate))
    return found


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
