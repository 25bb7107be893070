"""How many requests a series has in a day: counts of whole days, beside those of all series.

Requests of a day are no independent draws, so whole days are compared. The residual of a day is how far the logarithm
of its count lies above the median of the four days before it that are a week apart; a new week is thus held against the
weeks before it, on every day alike, growth or not. It is divided by what counting and this series' days scatter by
(the day itself left out), alone and as the mean of the last five days, and the larger of the two is the score. A day
of rank r among the N days of all series has a p-value of r / (N + 1): that takes weeks of history, and nothing is
reported before.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from weighbridge.pipeline.baseline.history import Ints, Mask
from weighbridge.pipeline.baseline.spans import Floats, running, whole_score

_WEEKS, _FEWEST_WEEKS = 4, 2
_WEEK = 7
_PRIOR_DAYS = 5  # days' worth of trust in what all series scatter by
# The variance of log(1 + count) that counting alone brings, times (1 + count): of the day and of its centre.
_COUNTING = 1.4


@dataclass(frozen=True, slots=True)
class CountScores:
    """Scores of the day, and those of the days before.

    Attributes:
        today: per series; NaN where it has no centre yet.
        past: all others, in rising order.
        centre: of the day, log(1 + count); NaN where there is none.
        settled: series that have a centre.
    """

    today: Floats
    past: Floats
    centre: Floats
    settled: Mask


def count_scores(counts: Ints, known: Mask) -> CountScores:
    """Score the last day and all days before it.

    Args:
        counts: series x day; the last day is the one that is judged.
        known: series x day: days that count. Not those before a series was first seen, nor days of which the lake
            knows nothing, nor confirmed incidents.
    """
    y = np.where(known, np.log1p(counts), np.nan)
    centre = _centres(y)
    residual = y - centre
    usable = np.isfinite(residual)
    counting = _COUNTING / (1.0 + np.expm1(np.where(usable, centre, 0.0)))
    scatter = _scatter(residual, counting, usable)
    variance = counting + scatter
    alone = residual / np.sqrt(variance)
    score = np.where(usable, whole_score(alone, _together(residual, variance, usable), running(usable)), np.nan)
    past = score[:, :-1]
    settled = usable[:, -1]
    return CountScores(
        today=np.where(settled, score[:, -1], np.nan),
        past=np.sort(past[np.isfinite(past)]),
        centre=np.where(settled, centre[:, -1], np.nan),
        settled=settled,
    )


def _centres(y: Floats) -> Floats:
    """Per day the median of the same weekday in the four weeks before it; NaN where fewer than two are known."""
    series, days = y.shape
    before = np.full((_WEEKS, series, days), np.nan)
    for week in range(_WEEKS):
        back = _WEEK * (week + 1)
        before[week, :, back:] = y[:, :-back] if back < days else np.nan
    ordered = np.sort(before, axis=0)  # NaN last
    size = np.isfinite(before).sum(axis=0)
    low = np.take_along_axis(ordered, np.maximum((size - 1) // 2, 0)[None], axis=0)[0]
    high = np.take_along_axis(ordered, np.minimum(size // 2, _WEEKS - 1)[None], axis=0)[0]
    return np.where(size >= _FEWEST_WEEKS, (low + high) / 2, np.nan)


def _scatter(residual: Floats, counting: Floats, usable: Mask) -> Floats:
    """What the days of a series scatter by beyond counting, each day left out of its own figure."""
    beyond = np.where(usable, residual**2 - counting, 0.0)
    beyond[:, -1] = 0.0
    past = usable.copy()
    past[:, -1] = False
    total, days = beyond.sum(axis=1, keepdims=True), past.sum(axis=1, keepdims=True)
    each = np.where(days > 0, total / np.maximum(days, 1), np.nan)
    known = each[np.isfinite(each)]
    common = max(float(np.median(known)), 0.0) if known.size else 0.0
    mine = (common * _PRIOR_DAYS + total - beyond) / (_PRIOR_DAYS + days - past)
    found: Floats = np.maximum(mine, 0.0)
    return found


def _together(residual: Floats, variance: Floats, usable: Mask) -> Floats:
    """The mean residual of the last five days in its own standard deviations."""
    sums, variances = running(np.where(usable, residual, 0.0)), running(np.where(usable, variance, 0.0))
    score: Floats = sums / np.sqrt(np.where(variances > 0, variances, 1.0))
    return score
