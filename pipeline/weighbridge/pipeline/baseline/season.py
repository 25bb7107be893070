"""The season of a cell: what rows of one hour have in common, taken off before rows of different hours are compared.

A row is held against the median of its hour of the UTC week where at least eight weeks have five rows or more in that
hour, else of its hour of the day where that has forty rows, else of the cell. Hours are UTC: where clocks are changed,
the season of local habits moves by an hour, and until eight weeks have passed the medians mix both.

A row of the history is held against the median of the *other* rows of its hour. Were it among them, the rows limits
are made of would lie closer to their centre than new rows can, and alarms would come more often than promised. For the
same reason a season is only taken off a cell where it brings the rows closer together: medians of hours that have
nothing to do with the hour (half of the rows are zero, a few rows an hour) would only add their own noise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from weighbridge.pipeline.baseline.history import HOURS, NO_HOUR, UNKNOWN, Ints, Mask, Rows, Small

WEEKS = 8
ROWS_A_WEEK = 5
ROWS_OF_AN_HOUR = WEEKS * ROWS_A_WEEK
WEEK = 7
DAY_HOURS = 24
# Standard deviations by which a season has to bring rows closer together.
_BEYOND_CHANCE = 2
# Levels, finest last.
CELL, HOUR_OF_DAY, HOUR_OF_WEEK = range(3)


@dataclass(frozen=True, slots=True)
class Centred:
    """The rows of one class around their seasonal centres; one item per row, those of the last day last.

    Attributes:
        series, day: as in `Rows`.
        centre: the seasonal centre, units of y.
        score: y - centre.
        level: which season was taken off.
    """

    series: Small
    day: NDArray[np.int16]
    centre: Small
    score: Small
    level: NDArray[np.int8]


def centred(
    rows: Rows, name: str, series: int, *, start: int, since: int, today: int, out: Mask | None = None
) -> Centred:
    """Centre the rows of one class from the day `since` up to `today` on what the days from `start` on have shown.

    Args:
        rows: the rows.
        name: the class.
        series: how many series there are.
        start, since, today: days; the season is learnt on start..today - 1, the rows of since..today are centred.
        out: series x day: rows that do not count (confirmed incidents); null: all do. `today` always counts.
    """
    y = rows.y[name]
    held = (rows.day >= start) & (rows.day <= today) & (y != UNKNOWN)
    if out is not None and out.any():
        held &= ~out[rows.series, rows.day] | (rows.day == today)
    at = np.flatnonzero(held)
    own, day, hour, value = rows.series[at], rows.day[at], rows.hour[at], y[at]
    past, asked = day < today, np.flatnonzero(day >= since)
    level = _levels(own, day, hour, past & (hour != NO_HOUR), series, today)
    shown, levels = value[asked], level[asked]
    plain = _medians(own[past].astype(np.int64), value[past], own[asked].astype(np.int64), shown, np.zeros(1, bool))
    centre = plain.astype(np.int32)
    for season in (HOUR_OF_DAY, HOUR_OF_WEEK):
        mine = levels == season
        if mine.any():
            bins, learnt, wanted = _bins(own, hour, season), past & (hour != NO_HOUR), asked[mine]
            centre[mine] = _medians(bins[learnt], value[learnt], bins[wanted], value[wanted], past[wanted])
    shows = past[asked]
    kept = asked[shows]
    better = _closer(own[kept], hour[kept], (shown - centre)[shows], (shown - plain)[shows], series)[own[asked]]
    centre = np.where(better, centre, plain).astype(np.int32)
    return Centred(own[asked], day[asked], centre, shown - centre, np.where(better, levels, CELL).astype(np.int8))


def _closer(own: Small, hour: NDArray[np.uint8], seasonal: Ints, plain: Ints, series: int) -> Mask:
    """The cells of which rows lie closer to the medians of their hours than to that of the cell, beyond chance.

    What an hour gains is summed over its rows, and the gains of all hours are held against how they scatter.
    """
    bins = _bins(own, hour, HOUR_OF_WEEK)
    # Whole numbers of units: sums below 2**53 are exact in any order.
    gains = np.bincount(bins, np.abs(plain) - np.abs(seasonal), minlength=series * HOURS).reshape(series, HOURS)
    found: Mask = gains.sum(axis=1) > _BEYOND_CHANCE * np.sqrt((gains**2).sum(axis=1))
    return found


def _bins(own: Small, hour: NDArray[np.uint8], season: int) -> Ints:
    """The group of rows that a row is held against. Rows without a time have none but the cell."""
    if season == HOUR_OF_DAY:
        of_day: Ints = own.astype(np.int64) * DAY_HOURS + hour % DAY_HOURS
        return of_day
    of_week: Ints = own.astype(np.int64) * HOURS + np.minimum(hour, HOURS - 1)
    return of_week


def _levels(
    own: Small, day: NDArray[np.int16], hour: NDArray[np.uint8], counted: Mask, series: int, today: int
) -> NDArray[np.int8]:
    """The finest season each row's hour has the history for; rows without a time have none."""
    level = np.zeros(len(own), np.int8)
    bins = _bins(own, hour, HOUR_OF_DAY)
    by_day = np.bincount(bins[counted], minlength=series * DAY_HOURS)
    level[by_day[bins] >= ROWS_OF_AN_HOUR] = HOUR_OF_DAY
    # Only a series with enough rows for one hour of the week is looked at by the hour of the week.
    rich = np.bincount(own[counted], minlength=series) >= ROWS_OF_AN_HOUR
    if rich.any():
        place = (np.cumsum(rich) - 1).astype(np.int32)
        bins = _bins(place[own], hour, HOUR_OF_WEEK)
        week = (today - 1 - day) // WEEK
        mine = counted & rich[own]
        weeks = np.zeros(int(rich.sum()) * HOURS, np.int16)
        for number in np.unique(week[mine]):
            weeks += np.bincount(bins[mine & (week == number)], minlength=len(weeks)) >= ROWS_A_WEEK
        level[rich[own] & (weeks[np.where(rich[own], bins, 0)] >= WEEKS)] = HOUR_OF_WEEK
    level[hour == NO_HOUR] = CELL
    return level


def _medians(bins: Ints, value: Small, wanted: Ints, own: Small, among: Mask) -> Ints:
    """Per wanted row the median of the values of its bin, without its own; 0 where none is left.

    Of an even number of values it is the middle of the two in the middle, rounded down.

    Args:
        bins, value: the values and their bins.
        wanted, own, among: per wanted row its bin, its value, and whether that is one of the values.
    """
    if not len(bins):
        return np.zeros(len(wanted), np.int64)
    ordered = pl.Series((bins << 32) | value).sort().to_numpy()
    sizes = np.bincount(bins, minlength=int(wanted.max()) + 1)
    starts = np.cumsum(sizes) - sizes
    size, start = sizes[wanted], starts[wanted]
    half, odd = size // 2, size % 2 == 1

    def rank(place: Ints) -> Ints:
        inside = start + np.clip(place, 0, np.maximum(size - 1, 0))
        found: Ints = ordered[np.minimum(inside, len(ordered) - 1)] & 0xFFFFFFFF
        return found

    before, middle, after = rank(half - 1), rank(half), rank(half + 1)
    whole = np.where(odd, middle, (before + middle) // 2)
    # Without a low value the middle moves up, without a high one down, without the middle one to both sides.
    from_odd = np.where(
        own < middle,
        (middle + after) // 2,
        np.where(own > middle, (before + middle) // 2, (before + after) // 2),
    )
    without = np.where(odd, from_odd, np.where(own <= before, middle, before))
    found = np.where(among & (size > 1), without, whole)
    return np.where(size > 0, found, 0)
