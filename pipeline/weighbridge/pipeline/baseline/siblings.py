"""The day of a cell that cannot stand alone: too few rows of its own, or rows of a day that go together.

A cell of few rows borrows from its parent (the other cells of its tenant and task, else those of its task, else all).
Its centre is drawn to the parent's, the more the fewer rows it has, and the score of a day is how far the mean of the
day lies above that centre, in standard deviations of rows, days and cells together:

    mu = (t2 m + v0 p) / (t2 + v0)      v = t2 v0 / (t2 + v0)      v0 = s2 / n + o2 / days
    score = (mean of the day - mu) / sqrt(s2 / rows of the day + o2 + v)

with the variances s2 of rows, o2 of days and t2 of cells found robustly, and m, n and p those of the reference window
before the day. The same is asked of the last five days together, and the larger score is the day's. What score is high
is not taken from a normal distribution but from the scores that the days before had, each beside the days before *it*:
a day of rank r among the N days of all such cells has a p-value of r / (N + 1).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from weighbridge.pipeline.baseline.history import SCALE, Ints, Mask
from weighbridge.pipeline.baseline.limits import Ordered, rank_of
from weighbridge.pipeline.baseline.spans import Floats, preceding, running, whole_score

# A cell needs so many rows and days to say anything about the variances of its task, a task so many cells.
_ROWS, _CELLS, _DAYS = 20, 5, 5
# From so many days on, the days of a cell scatter as its own days do, not as those of its task.
_OWN_DAYS = 10
_PARENT_ROWS = 30
_WEEK = 7
# Rows of cells with few rows, below which rows of others stand in; and the rows those need to know their own mean.
_ENOUGH_ROWS, _OWN_ROWS = 1000, 99
# Days of the reference that a past day needs before it to be scored.
_LEAST_PAST = 14


@dataclass(frozen=True, slots=True)
class Kin:
    """Who is related to whom; one item per cell.

    Attributes:
        parent: group of the cells of one tenant and task.
        family: group of the cells of one task.
    """

    parent: Ints
    family: Ints


@dataclass(frozen=True, slots=True)
class Past:
    """What the days before each day hold; cell x day, the judged day last.

    Attributes:
        rows, days: rows, and days that have any.
        mean: mean of y; NaN without rows.
        parent: mean of y of the nearest relatives with rows enough; NaN without any.
        scatter: variance of days beyond that of their rows, by one-way moments, before it is bounded below.
    """

    rows: Floats
    days: Floats
    mean: Floats
    parent: Floats
    scatter: Floats

    def of(self, cells: Mask | slice, days: int | slice) -> Past:
        """A part of it."""
        return Past(*(values[cells, days] for values in (self.rows, self.days, self.mean, self.parent, self.scatter)))


@dataclass(frozen=True, slots=True)
class Variances:
    """Variances of y: of rows, of days of cells that have few of them, and of cells around their parents; per cell."""

    rows: Floats
    days: Floats
    cells: Floats

    def of(self, cells: Mask | Ints) -> Variances:
        """Those of some cells, as columns beside their days."""
        return Variances(self.rows[cells, None], self.days[cells, None], self.cells[cells, None])


@dataclass(frozen=True, slots=True)
class Shrunk:
    """Where a new day of each cell is expected.

    Attributes:
        centre: mu, in y.
        unsure: v, how sure that is.
        days: o2, the variance of days.
    """

    centre: Floats
    unsure: Floats
    days: Floats


def past_of(rows: Ints, sums: Floats, spread: Floats, kin: Kin, *, reference: int) -> tuple[Past, Variances]:
    """What the days before each day hold, and the variances of one class.

    Args:
        rows, sums: cell x day, the judged day last: rows, and the sum of their y (`without_week`).
        spread: per cell the standard deviation of its rows of the reference, units of y; NaN where unknown.
        kin: who is related.
        reference: how many days before a day its reference has.
    """
    count, whole = preceding(rows, reference), preceding(sums, reference)
    days = preceding(rows > 0, reference)
    squares = preceding(np.where(rows > 0, sums**2 / np.maximum(rows, 1), 0.0), reference)
    sizes = preceding(rows.astype(np.float64) ** 2, reference)
    enough = count[:, -1] >= _ROWS
    row = _by_family(np.where(enough & (spread > 0), (spread / SCALE) ** 2, np.nan), kin.family, 1.0)
    free = np.maximum(days - 1, 1)
    between = (squares - whole**2 / np.maximum(count, 1)) / free
    typical = (count - sizes / np.maximum(count, 1)) / free
    scatter = np.where(typical > 0, (between - row[:, None]) / np.where(typical > 0, typical, 1.0), 0.0)
    past = Past(count, days, _mean(whole, count), _parents(whole, count, kin), scatter)
    known = enough & (days[:, -1] >= _DAYS)
    day = _by_family(np.where(known, np.maximum(scatter[:, -1], 0.0), np.nan), kin.family, 0.0)
    within = row / np.maximum(count[:, -1], 1) + day / np.maximum(days[:, -1], 1)
    off = np.where(enough, past.mean[:, -1] - past.parent[:, -1], np.nan)
    return past, Variances(row, day, _cell_variance(off, within, kin.family, row))


def without_week(rows: Ints, total: Ints, kin: Kin) -> Floats:
    """The sums of y without what the days of the week have in common in all cells of a task, in y.

    Args:
        rows, total: cell x day, the judged day last: rows, and the sum of their y.
        kin: who is related.
    """
    sums = total / SCALE
    weekday = np.arange(rows.shape[1]) % _WEEK
    past = slice(0, -1)
    mean = _mean(sums[:, past].sum(axis=1), rows[:, past].sum(axis=1))
    off = np.where(rows[:, past] > 0, sums[:, past] - rows[:, past] * np.nan_to_num(mean)[:, None], 0.0)
    effect = np.zeros((len(rows), _WEEK))
    for each in range(_WEEK):
        mine = weekday[past] == each
        moved = _grouped(off[:, mine].sum(axis=1, keepdims=True), kin.family)
        counted = _grouped(rows[:, past][:, mine].sum(axis=1, keepdims=True).astype(np.float64), kin.family)
        effect[:, each] = np.where(counted > 0, moved / np.maximum(counted, 1), 0.0)[:, 0]
    return sums - rows * effect[:, weekday]


def shrunk(past: Past, found: Variances) -> Shrunk:
    """Where a day is expected from the days before it. The shapes have to fit each other."""
    day = np.where(past.days >= _OWN_DAYS, np.maximum(past.scatter, 0.0), found.days)
    own = found.rows / np.maximum(past.rows, 1) + day / np.maximum(past.days, 1)
    both = found.cells + own
    apart, orphan, known = both > 0, ~np.isfinite(past.parent), past.rows > 0
    safe = np.where(apart, both, 1.0)
    drawn = np.where(apart, (found.cells * past.mean + own * past.parent) / safe, past.mean)
    centre = np.where(known, np.where(orphan, past.mean, drawn), past.parent)
    unsure = np.where(orphan, own, found.cells * own / safe)
    return Shrunk(centre, np.where(known, unsure, found.cells + 0 * own), day)


def day_scores(rows: Ints, sums: Floats, past: Past, found: Variances, cells: Mask) -> Floats:
    """Cell x day, of the chosen cells: the score of each day; NaN where it has no rows, or too few days before it."""
    mine, own_sums = rows[cells], sums[cells]
    variances = found.of(cells)
    expected = shrunk(past.of(cells, slice(None)), variances)
    usable = (mine > 0) & np.isfinite(expected.centre)
    usable[:, :_LEAST_PAST] = False
    residual = np.where(usable, own_sums / np.maximum(mine, 1) - expected.centre, 0.0)
    own = np.where(usable, variances.rows / np.maximum(mine, 1) + expected.days, 0.0)
    unsure = np.where(usable, expected.unsure, 0.0)
    spread = own + unsure
    alone = residual / np.sqrt(np.where(spread > 0, spread, 1.0))
    # What is unsure about the centre is the same on all of the five days.
    wide = running(own) + running(np.sqrt(unsure)) ** 2
    together = running(residual) / np.sqrt(np.where(wide > 0, wide, 1.0))
    return np.where(usable, whole_score(alone, together, running(usable)), np.nan)


def rank_p_values(today: Floats, past: Floats) -> Floats:
    """(1 + how many past scores are as high) / (1 + how many there are); NaN where there is no score.

    Args:
        today: scores.
        past: scores to compare with, in rising order.
    """
    higher = len(past) - np.searchsorted(past, today, side="left")
    return np.where(np.isfinite(today), (1 + higher) / (1 + len(past)), np.nan)


@dataclass(frozen=True, slots=True)
class PooledLimits:
    """Limits of single rows of cells with few rows, in y; NaN where the rows of all siblings together are too few."""

    upper: Floats
    lower: Floats
    limit: Floats


def pooled_limits(
    cell: Ints, y: Ints, reference: Ordered, past: Past, found: Variances, rates: tuple[Fraction, Fraction]
) -> PooledLimits:
    """Order statistics of the scores of all rows of such cells, each beside its cell without it.

    Where they are too few, as where only new cells have no rows of their own, rows of all cells stand in.

    Args:
        cell, y: the rows of the reference that belong to cells with few rows.
        reference: scores of all rows of the reference.
        past: of the judged day: one item per cell.
        found: the variances.
        rates: of the band, and of single requests.
    """
    left = past.rows[cell] - 1
    without = _mean(past.rows[cell] * past.mean[cell] - y / SCALE, left)
    of_rows = Variances(found.rows[cell], found.days[cell], found.cells[cell])
    beside = shrunk(Past(left, past.days[cell], without, past.parent[cell], past.scatter[cell]), of_rows)
    expected = shrunk(past, found)
    scores = (y / SCALE - beside.centre) / np.sqrt(of_rows.rows + beside.days + beside.unsure)
    if len(scores) < _ENOUGH_ROWS:
        scores = np.concatenate([scores, _own_scores(reference, found.rows + expected.days)])
    scores = np.sort(scores[np.isfinite(scores)])
    wide = np.sqrt(found.rows + expected.days + expected.unsure)

    def at(rate: Fraction, *, low: bool = False) -> Floats:
        rank = int(rank_of(np.array([len(scores)]), rate)[0])
        if rank > len(scores):
            return np.full(len(wide), np.nan)
        limits: Floats = expected.centre + wide * scores[len(scores) - rank if low else rank - 1]
        return limits

    band, single = rates
    return PooledLimits(at(band), at(band, low=True), at(single))


def _own_scores(reference: Ordered, variance: Floats) -> Floats:
    """Rows beside their own cell, of cells that have enough of them."""
    enough = reference.sizes >= _OWN_ROWS
    sums = np.zeros(len(reference.sizes))
    filled = np.flatnonzero(reference.sizes)
    sums[filled] = np.add.reduceat(reference.values, reference.starts[filled])
    mean = sums / np.maximum(reference.sizes, 1)
    cell = np.repeat(np.arange(len(reference.sizes)), reference.sizes)
    kept = enough[cell]
    scores: Floats = (reference.values[kept] - mean[cell[kept]]) / SCALE / np.sqrt(variance[cell[kept]])
    return scores


def _mean(total: Floats, rows: Floats) -> Floats:
    """Means in y; NaN where there are no rows."""
    return np.where(rows > 0, total / np.maximum(rows, 1), np.nan)


def _parents(total: Floats, rows: Floats, kin: Kin) -> Floats:
    """The mean of each cell's relatives without the cell itself: the nearest group that has rows enough."""
    out = np.full(rows.shape, np.nan)
    for group in (np.zeros(len(rows), np.int64), kin.family, kin.parent):
        other = _grouped(rows, group) - rows
        out = np.where(other >= _PARENT_ROWS, _mean(_grouped(total, group) - total, other), out)
    return out


def _grouped(values: Floats, group: Ints) -> Floats:
    days = values.shape[1]
    places = (group[:, None] * days + np.arange(days)).ravel()
    size = int(group.max(initial=0)) + 1
    # One after the other in the order of the cells, so that the same cells give the same bytes.
    sums: Floats = np.bincount(places, weights=values.ravel(), minlength=size * days).astype(np.float64, copy=False)
    return sums.reshape(size, days)[group]


def _cell_variance(off: Floats, within: Floats, family: Ints, row: Floats) -> Floats:
    """By the median deviation of cells from their parents, less what comes from their own rows."""
    centre = _by_family(off, family, 0.0, fewest=_CELLS)
    scatter = (1.4826 * _by_family(np.abs(off - centre), family, np.nan, fewest=_CELLS)) ** 2
    own = _by_family(np.where(np.isfinite(off), within, np.nan), family, 0.0, fewest=_CELLS)
    # Where too few cells are known, cells are taken to differ as much as rows do: little is borrowed, nothing alarms.
    return np.where(np.isfinite(scatter), np.maximum(scatter - own, 0.0), row)


def _by_family(values: Floats, family: Ints, otherwise: float, *, fewest: int = 1) -> Floats:
    """Per cell the median of its family's known values, else of all known values, else `otherwise`."""
    known = np.isfinite(values)
    overall = float(np.median(values[known])) if known.sum() >= fewest else otherwise
    out = np.full(int(family.max(initial=0)) + 1, overall)
    order = np.argsort(family[known], kind="stable")
    groups, starts = np.unique(family[known][order], return_index=True)
    for group, part in zip(groups, np.split(values[known][order], starts[1:]), strict=False):
        if len(part) >= fewest:
            out[group] = float(np.median(part))
    return out[family]
