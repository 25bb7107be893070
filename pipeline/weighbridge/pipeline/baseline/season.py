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
from typing import Any

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
# Counters of rows per week and hour that are kept at once.
_COUNTERS = 2**22
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
    own, day, hour, value = (_kept(each, held) for each in (rows.series, rows.day, rows.hour, y))
    past, asked = day < today, np.flatnonzero(day >= since)
    level = _levels(own, day, hour, past & (hour != NO_HOUR), series, today)
    shown, levels, shows = value[asked], level[asked], past[asked]
    plain = _Medians.of(own[past].astype(np.int64), value[past], series).whole[own[asked]]
    centre = plain.copy()
    for season, hours in ((HOUR_OF_DAY, DAY_HOURS), (HOUR_OF_WEEK, HOURS)):
        mine = levels == season
        if mine.any():
            bins, learnt = _bins(own, hour, season), past & (hour != NO_HOUR)
            medians = _Medians.of(bins[learnt], value[learnt], series * hours)
            for rows_of, which in ((shows, medians.without), (~shows, medians.all_of)):
                at = np.flatnonzero(mine & rows_of)
                centre[at] = which(bins[asked[at]], shown[at])
    kept = asked[shows]
    better = _closer(own[kept], hour[kept], (shown - centre)[shows], (shown - plain)[shows], series)[own[asked]]
    centre = np.where(better, centre, plain)
    return Centred(own[asked], day[asked], centre, shown - centre, np.where(better, levels, CELL).astype(np.int8))


def _kept(values: NDArray[Any], held: Mask) -> NDArray[Any]:
    return values if held.all() else values[held]


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
        week = ((today - 1 - day) // WEEK).astype(np.int64)
        mine, size = counted & rich[own], int(rich.sum()) * HOURS
        weeks = np.zeros(size, np.int16)
        # Many weeks at once, as far as their counters stay small.
        for first in range(0, int(week.max(initial=0)) + 1, step := max(_COUNTERS // size, 1)):
            now = mine & (week >= first) & (week < first + step)
            counts = np.bincount((week[now] - first) * size + bins[now], minlength=step * size)
            weeks += (counts.reshape(step, size) >= ROWS_A_WEEK).sum(axis=0, dtype=np.int16)
        level[rich[own] & (weeks[np.where(rich[own], bins, 0)] >= WEEKS)] = HOUR_OF_WEEK
    level[hour == NO_HOUR] = CELL
    return level


@dataclass(frozen=True, slots=True)
class _Medians:
    """The medians of bins of values, whole and with one of their values left out; 0 where there is none.

    Of an even number of values it is the middle of the two in the middle, rounded down. Without a value below `low` it
    is `below`, without one above `high` it is `above`, without one between them `between`.
    """

    whole: Small
    low: Small
    high: Small
    below: Small
    between: Small
    above: Small

    @classmethod
    def of(cls, bins: Ints, value: Small, size: int) -> _Medians:
        """The medians of `size` bins."""
        ordered = pl.Series((bins << 32) | value).sort().to_numpy() if len(bins) else np.zeros(1, np.int64)
        sizes = np.bincount(bins, minlength=size)
        starts = np.cumsum(sizes) - sizes
        half, odd = sizes // 2, sizes % 2 == 1

        def rank(place: Ints) -> Ints:
            inside = starts + np.clip(place, 0, np.maximum(sizes - 1, 0))
            found: Ints = np.where(sizes > 0, ordered[np.minimum(inside, len(ordered) - 1)] & 0xFFFFFFFF, 0)
            return found

        before, middle, after = rank(half - 1), rank(half), rank(half + 1)
        whole = np.where(odd, middle, (before + middle) // 2)
        alone = sizes == 1
        # Without a low value the middle moves up, without a high one down, without the middle one to both sides.
        parts = (
            whole,
            np.where(odd, middle, before + 1),
            np.where(odd, middle, before),
            np.where(alone, whole, np.where(odd, (middle + after) // 2, middle)),
            np.where(alone, whole, (before + after) // 2),
            np.where(alone, whole, np.where(odd, (before + middle) // 2, before)),
        )
        return cls(*(part.astype(np.int32) for part in parts))

    def all_of(self, bins: Ints, _: Small) -> Small:
        """Per row the median of its bin."""
        return self.whole[bins]

    def without(self, bins: Ints, own: Small) -> Small:
        """Per row the median of its bin without the row's own value, which is one of them."""
        found = self.between[bins]
        at = np.flatnonzero(own < self.low[bins])
        found[at] = self.below[bins[at]]
        at = np.flatnonzero(own > self.high[bins])
        found[at] = self.above[bins[at]]
        return found
