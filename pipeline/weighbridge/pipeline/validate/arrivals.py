"""What arrived: whether each source still delivers, and whether a day has about as many rows as its days have had.

Volume: a day is held against the same table and source's last 28 days, days without rows counted as 0. Its limits are
the second lowest and the second highest of them (the lowest and the highest where there are fewer than 20), widened by
half and by ten rows. Without the widening, an exchangeable day lies outside with probability 2r / (n + 1), r being the
rank and n the number of days; that promise is exact whatever the distribution, and the widening keeps days out that are
unusual but small. With fewer than 14 days, for a source that has rows on fewer than every other of them, and for a day
that is not over, there is no verdict.

Freshness: a source is late when it has been silent for longer than its longest pause of the 28 days before, and a day
more; one that has been silent for more than 28 days has ended, which is noted and no finding. A source with fewer
than four days has no habit yet.

All sources whose name is none are one source here: they cannot be told apart without saying what they are called.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import pairwise

from weighbridge.pipeline.lake import Lake
from weighbridge.pipeline.lake.files import Part
from weighbridge.pipeline.lake.words import texts
from weighbridge.pipeline.validate.counts import Counted, tally
from weighbridge.pipeline.validate.violation import named

WINDOW = 28
FEWEST = 14
_SECOND = 20
_SLACK = 10
_HABIT = 4
# Days a row may lie ahead: two clocks need not agree about midnight.
MOST_AHEAD = 1
_A_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Volume:
    """The rows of one source on one day, held against its window.

    Attributes:
        source: who wrote them, as it may be shown.
        day: the day.
        rows: how many.
        low, high: the limits, both inclusive; null: no verdict.
        days: how many days the window has.
        promise: how often an exchangeable day lies outside the unwidened limits, null where there is no verdict.
        ahead: how many days it lies after today.
    """

    source: str
    day: date
    rows: int
    low: int | None = None
    high: int | None = None
    days: int = 0
    promise: float | None = None
    ahead: int = 0


@dataclass(frozen=True, slots=True)
class Freshness:
    """How long a source has been silent.

    Attributes:
        source: who, as it may be shown.
        newest: its newest day with rows.
        silent: days from there to today.
        limit: how many may pass; null: no habit yet, or it has ended.
        ended: it has been silent for longer than the window.
    """

    source: str
    newest: date
    silent: int
    limit: int | None
    ended: bool


def arrivals(
    lake: Lake,
    table: str,
    counted: Mapping[date | None, Counted],
    parts: Sequence[Part],
    days: Collection[date],
    today: date,
) -> tuple[list[Volume], list[Freshness]]:
    """Volume and freshness of every source of a table.

    Args:
        lake: the lake; its lock is held.
        table: a table kept by day that names its sources.
        counted: what was counted already.
        parts: all files of the table.
        days: the days to judge.
        today: the UTC day of today.
    """
    if not days:
        return [], []
    rows = _by_source(lake, table, counted, parts, min(days) - WINDOW * _A_DAY)
    volumes: list[Volume] = []
    freshnesses: list[Freshness] = []
    for source in sorted(rows):
        freshnesses.append(freshness(source, rows[source], today))
        # After its last day a source is judged for as long as freshness does not speak, and to today at most: of a day
        # still to come only rows that are there are told.
        last = min(freshnesses[-1].newest + (freshnesses[-1].limit or 0) * _A_DAY, today)
        ahead = {day for day in rows[source] if day > today}
        inside = sorted(day for day in days if min(rows[source]) <= day <= last or day in ahead)
        volumes += [volume(source, rows[source], day, today) for day in inside]
    return volumes, freshnesses


def _by_source(
    lake: Lake, table: str, counted: Mapping[date | None, Counted], parts: Sequence[Part], first: date
) -> dict[str, dict[date, int]]:
    """Source -> day -> rows, of the days from `first` on."""
    rows: dict[str, dict[date, int]] = {}

    def add(day: date | None, found: Mapping[str | None, int]) -> None:
        assert day is not None
        for source, number in found.items():
            of_source = rows.setdefault(named(source), {})
            of_source[day] = of_source.get(day, 0) + number

    for day, of_day in counted.items():
        add(day, of_day.tallies.get("source", {}))
    rest = [part for part in parts if part.day is not None and part.day >= first and part.day not in counted]
    for day, columns in texts(lake, table, ["source"], rest):
        add(day, tally(columns["source"]))
    return rows


def volume(source: str, of_source: Mapping[date, int], day: date, today: date) -> Volume:
    """The rows of one source on one day, held against its window."""
    rows = of_source.get(day, 0)
    if day > today:
        return Volume(source, day, rows, ahead=(day - today).days)
    start = max(min(of_source), day - WINDOW * _A_DAY)
    window = sorted(of_source.get(start + n * _A_DAY, 0) for n in range((day - start).days))
    if len(window) < FEWEST or sum(map(bool, window)) * 2 < len(window):
        return Volume(source, day, rows, days=len(window))
    rank = 2 if len(window) >= _SECOND else 1
    low = max(0, window[rank - 1] - window[rank - 1] // 2 - _SLACK)
    high = window[-rank] + window[-rank] // 2 + _SLACK
    promise = 2 * rank / (len(window) + 1)
    return Volume(source, day, rows, low if day < today else None, high, len(window), promise)


def freshness(source: str, of_source: Mapping[date, int], today: date) -> Freshness:
    """How long a source has been silent, against the pauses it is used to make."""
    newest = max((day for day in of_source if day <= today), default=max(of_source))
    silent = max(0, (today - newest).days)
    active = sorted(day for day in of_source if newest - WINDOW * _A_DAY <= day <= newest)
    if silent > WINDOW or len(active) < _HABIT:
        return Freshness(source, newest, silent, None, silent > WINDOW)
    pauses = [(later - earlier).days for earlier, later in pairwise(active)]
    return Freshness(source, newest, silent, max(pauses) + 1, ended=False)
