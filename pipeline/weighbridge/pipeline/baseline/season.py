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
from numpy.typing import NDArray

from weighbridge.pipeline.baseline.class_rows import DAY_HOURS, PLACES, ClassRows
from weighbridge.pipeline.baseline.history import HOURS, Ints, Mask, Rows, Small
from weighbridge.pipeline.baseline.medians import Medians, Sorted, packed

WEEKS = 8
ROWS_A_WEEK = 5
ROWS_OF_AN_HOUR = WEEKS * ROWS_A_WEEK
WEEK = 7
# Standard deviations by which a season has to bring rows closer together.
_BEYOND_CHANCE = 2
# Counters of rows per week and hour that are kept at once.
_COUNTERS = 2**22
# Levels, finest last.
CELL, HOUR_OF_DAY, HOUR_OF_WEEK = range(3)
# How many groups of rows a series has at each level.
_GROUPS = {CELL: 1, HOUR_OF_DAY: DAY_HOURS, HOUR_OF_WEEK: HOURS}


@dataclass(frozen=True, slots=True)
class Centred:
    """The rows of one class around their seasonal centres; one item per row, in the order of days.

    Attributes:
        series, day: as in `Rows`.
        y: what was measured.
        centre: the seasonal centre, units of y.
        score: y - centre.
        level: which season was taken off.
    """

    series: Small
    day: NDArray[np.int16]
    y: Small
    centre: Small
    score: Small
    level: NDArray[np.int8]

    def place(self, day: int) -> int:
        """The first row of a day, or of the days after it."""
        return int(np.searchsorted(self.day, day))


def centred(
    rows: Rows,
    name: str,
    series: int,
    *,
    start: int,
    since: int,
    today: int,
    out: Mask | None = None,
    run: Sorted | None = None,
) -> Centred:
    """Centre the rows of one class from the day `since` up to `today` on what the days from `start` on have shown.

    Args:
        rows: the rows.
        name: the class.
        series: how many series there are.
        start, since, today: days; the season is learnt on start..today - 1, the rows of since..today are centred.
        out: series x day: rows that do not count (confirmed incidents); null: all do. `today` always counts.
        run: what was sorted for the days that were judged before; null: nothing was.
    """
    out = out if out is not None and out.any() else None
    run = Sorted(most=0) if run is None else run
    first = run.since([(name, level) for level in _GROUPS], start)
    held = ClassRows.of(rows, name, first, today, out)

    def medians(level: int) -> Medians:
        values = run.of((name, level), start, today, out, lambda first, last: _grouped(held.days(first, last), level))
        return Medians.of(values, series * _GROUPS[level])

    cell, of_day = medians(CELL), medians(HOUR_OF_DAY)
    levels = np.full((series, PLACES), CELL, np.int8)
    hours = levels[:, :HOURS]
    hours[np.tile(of_day.sizes.reshape(series, DAY_HOURS) >= ROWS_OF_AN_HOUR, WEEK)] = HOUR_OF_DAY
    hours[_often(held.days(start, today), series, today)] = HOUR_OF_WEEK
    asked = held.days(since, today + 1)
    plain = cell.whole[asked.series]
    if not hours.any():
        return Centred(asked.series, asked.day, asked.y, plain, asked.y - plain, np.zeros(len(plain), np.int8))
    found = {HOUR_OF_DAY: of_day}
    if (hours == HOUR_OF_WEEK).any():
        found[HOUR_OF_WEEK] = medians(HOUR_OF_WEEK)
    places, past = asked.places(), asked.place(today)
    centre = _centres(cell, found, levels, places, asked.y, past)
    better = _closer(places[:past], (asked.y - centre)[:past], (asked.y - plain)[:past], series)[asked.series]
    centre = plain + (centre - plain) * better
    return Centred(asked.series, asked.day, asked.y, centre, asked.y - centre, levels.ravel()[places] * better)


def _grouped(rows: ClassRows, level: int) -> Ints:
    """The values of rows beside the groups they are held against. Rows without a time have none but the cell."""
    if level == CELL:
        return packed(rows.series.astype(np.int64), rows.y)
    timed = rows.timed()
    return packed(timed.by_hour_of_day() if level == HOUR_OF_DAY else timed.by_hour_of_week(), timed.y)


def _often(rows: ClassRows, series: int, today: int) -> Mask:
    """Series x hour of the week: at least eight weeks have five rows or more in it."""
    none = np.zeros((series, HOURS), bool)
    weeks = (today - 1 - int(rows.day[0])) // WEEK + 1 if len(rows.day) else 0
    if weeks < WEEKS:
        return none
    timed = rows.timed()
    hour = timed.by_hour_of_week()
    # Only hours that have rows enough for it are looked at week by week.
    rich = np.flatnonzero(np.bincount(hour, minlength=series * HOURS) >= ROWS_OF_AN_HOUR)
    if not len(rich):
        return none
    place = np.full(series * HOURS, -1, np.int64)
    place[rich] = np.arange(len(rich))
    at = np.flatnonzero(place[hour] >= 0)
    mine, week = place[hour[at]], (today - 1 - timed.day[at].astype(np.int64)) // WEEK
    full = np.zeros(len(rich), np.int16)
    # Many weeks at once, as far as their counters stay small; the days are in order, and so are the weeks, backwards.
    step = min(weeks, max(_COUNTERS // len(rich), 1))
    for first in range(0, weeks, step):
        now = slice(*(len(week) - np.searchsorted(week[::-1], [first + step, first])).tolist())
        counts = np.bincount((week[now] - first) * len(rich) + mine[now], minlength=step * len(rich))
        full += (counts.reshape(step, len(rich)) >= ROWS_A_WEEK).sum(axis=0, dtype=np.int16)
    none.ravel()[rich[full >= WEEKS]] = True
    return none


def _centres(
    cell: Medians, found: dict[int, Medians], levels: NDArray[np.int8], places: Ints, y: Small, past: int
) -> Small:
    """Per row the median of its group: of the first `past` rows without the row itself, which is one of them."""

    def table(name: str, otherwise: Small | int) -> Small:
        out = np.empty(levels.shape, np.int32)
        out[:] = otherwise[:, None] if isinstance(otherwise, np.ndarray) else otherwise
        for level, medians in found.items():
            each = getattr(medians, name).reshape(len(levels), -1)
            here = levels[:, :HOURS] == level
            np.copyto(out[:, :HOURS], each if level == HOUR_OF_WEEK else np.tile(each, WEEK), where=here)
        return out.ravel()

    whole = table("whole", cell.whole)
    # That of a cell is left as it is: it hardly moves with one of its values.
    without = np.stack([table(name, cell.whole) for name in ("below", "between", "above")], axis=1).ravel()
    low, high = table("low", 0), table("high", np.iinfo(np.int32).max)
    at, own = places[:past], y[:past]
    side = (own >= low[at]).astype(np.int8) + (own > high[at])
    return np.concatenate([without[3 * at + side], whole[places[past:]]])


def _closer(places: Ints, seasonal: Small, plain: Small, series: int) -> Mask:
    """The cells of which rows lie closer to the medians of their hours than to that of the cell, beyond chance.

    What an hour gains is summed over its rows, and the gains of all hours are held against how they scatter.
    """
    # Whole numbers of units: sums below 2**53 are exact in any order.
    sums = np.bincount(places, np.abs(plain) - np.abs(seasonal), minlength=series * PLACES)
    gains = sums.reshape(series, PLACES)[:, :HOURS]  # a row without a time gains nothing
    found: Mask = gains.sum(axis=1) > _BEYOND_CHANCE * np.sqrt((gains**2).sum(axis=1))
    return found
