"""Windows that no attempt runs across: as short as can be compared exactly, and no longer than a day.

    scrapes        |------------|------------|------------|
    attempts         ====  ===    ======    ========
    windows        |-------------------------|------------|      nobody ran at the first and the last two scrapes

Between two scrapes at which no counter had moved nothing ran, so a window may end anywhere in between. The last scrape
of a UTC day ends a window whoever runs: what runs across such a border adds anything from nothing to all it has.

Counters that are told where the engine came to rest stand still at that time by themselves. An attempt that is alive
then has not begun to be worked on, or is done: of its life only that counts in which the engine worked at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from weighbridge.pipeline.engine.servers import Interval, Series

if TYPE_CHECKING:
    from numpy.typing import NDArray

# How long a call may be under way to an engine, or back from it, where only the caller tells when it began and ended.
ON_THE_WAY_US = 50_000
# An engine tells its own times; they are differences of figures that were rounded.
ROUNDED_US = 2
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of time and what was counted in it.

    Attributes:
        since, until: its ends; attempts that begin at `since` and end at `until` lie in it.
        counts: what was counted, by counter and label; one that any scrape in it did not tell is not there.
        reset: a counter began anew in it; `starts`: counting began with it.
    """

    since: datetime
    until: datetime
    counts: dict[Series, int]
    reset: bool
    starts: bool


@dataclass(frozen=True, slots=True)
class Placed:
    """The windows of a server, and where attempts lie.

    Attributes:
        windows: in order; none overlaps another.
        inside: per attempt the window it lies in, null where it lies in none.
        across: window, and place of an attempt that runs across one of its ends.
    """

    windows: Sequence[Window]
    inside: pl.Series
    across: Sequence[tuple[int, int]]


def placed(intervals: Sequence[Interval], lives: pl.DataFrame, *, at_rest: bool) -> Placed:
    """Windows of a server's intervals, and the attempts in them.

    Args:
        intervals: in order; no two overlap, but there may be time between them.
        lives: begin and end of each attempt, and whether an engine told them (`engine_counted`).
        at_rest: the counters are told where the engine came to rest.
    """
    begin, end = (lives[name].dt.timestamp("us").to_numpy().copy() for name in ("begin", "end"))
    if at_rest:
        way = np.where(lives["engine_counted"].to_numpy(), ROUNDED_US, ON_THE_WAY_US)
        begin, end = _at_work(intervals, *_kept(begin, end, way))
    runs = _runs(begin, end)
    since, until = (np.array([_us(getattr(each, name)) for each in intervals]) for name in ("since", "until"))
    borders = _borders(intervals, since, until, runs)
    starts = np.searchsorted(borders, since, side="right") - 1
    ends = np.searchsorted(borders, until, side="left")
    held: dict[int, list[Interval]] = {}
    for first, last, interval in zip(starts, ends, intervals, strict=True):
        if last - first > 1:  # nothing was counted in it: it is cut, and each piece has none of it
            for piece in range(first, last):
                held.setdefault(piece, []).append(interval)
        else:
            held.setdefault(int(first), []).append(interval)
    numbers = sorted(held)
    windows = [_window(held[number], borders[number], borders[number + 1]) for number in numbers]
    renumbered = {number: place for place, number in enumerate(numbers)}
    return _with_attempts(windows, borders, renumbered, (begin, end), _blurred(intervals, begin, end))


def _blurred(intervals: Sequence[Interval], begin: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether an attempt ran while some servers had been told of and others had not."""
    out = np.zeros(len(begin), dtype=bool)
    for low, high in {zone for each in intervals for zone in each.zones if zone[0] < zone[1]}:
        out |= (begin < _us(high)) & (end > _us(low))
    return out


def _with_attempts(
    windows: list[Window],
    borders: NDArray[np.int64],
    renumbered: dict[int, int],
    life: tuple[NDArray[np.int64], NDArray[np.int64]],
    blurred: NDArray[np.bool_],
) -> Placed:
    begin, end = life
    first = np.searchsorted(borders, begin, side="right") - 1
    last = np.maximum(np.searchsorted(borders, end, side="left") - 1, first)
    inside: list[int | None] = []
    across: list[tuple[int, int]] = []
    for place, (low, high, soft) in enumerate(zip(first.tolist(), last.tolist(), blurred.tolist(), strict=True)):
        if low == high and not soft:
            inside.append(renumbered.get(low))
            continue
        inside.append(None)
        touched = range(low - soft, high + 1 + soft)
        across += [(renumbered[number], place) for number in touched if number in renumbered]
    return Placed(windows, pl.Series("window", inside, dtype=pl.Int64), across)


def _us(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(microseconds=1)


def _moment(us: int) -> datetime:
    return _EPOCH + timedelta(microseconds=int(us))


def _kept(
    begin: NDArray[np.int64], end: NDArray[np.int64], way: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Lives without the way there and back; of one that is shorter than both only its middle."""
    short = end - begin <= 2 * way
    middle = begin + (end - begin) // 2
    return np.where(short, middle, begin + way), np.where(short, middle, end - way)


def _at_work(
    intervals: Sequence[Interval], begin: NDArray[np.int64], end: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Lives cut to the stretches in which anything was counted; of one that touches none only its middle."""
    busy = [each for each in intervals if not each.reset and not each.still]
    since, until = (
        np.array([_us(getattr(each, name)) for each in busy], dtype=np.int64) for name in ("since", "until")
    )
    middle = begin + (end - begin) // 2
    if not len(since):
        return middle, middle
    first = np.searchsorted(until, begin, side="right")
    last = np.searchsorted(since, end, side="left") - 1
    some = (last >= first) & (first < len(since))
    low = np.maximum(begin, since[np.minimum(first, len(since) - 1)])
    high = np.minimum(end, until[np.maximum(last, 0)])
    return np.where(some, low, middle), np.where(some, np.maximum(low, high), middle)


def _runs(begin: NDArray[np.int64], end: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Begin and end of each stretch in which any attempt runs."""
    if not len(begin):
        return begin, end
    order = np.argsort(begin, kind="stable")
    starts, reach = begin[order], np.maximum.accumulate(end[order])
    fresh = np.r_[True, starts[1:] >= reach[:-1]]
    heads = np.flatnonzero(fresh)
    return starts[heads], reach[np.r_[heads[1:] - 1, len(reach) - 1]]


def _borders(
    intervals: Sequence[Interval],
    since: NDArray[np.int64],
    until: NDArray[np.int64],
    runs: tuple[NDArray[np.int64], NDArray[np.int64]],
) -> NDArray[np.int64]:
    """Where windows begin and end, in order."""
    scrapes = np.unique(np.r_[since, until])
    free = scrapes[~_is_inside(scrapes, runs)]
    days = [_us(each.until) for each, after in pairwise(intervals) if each.until.date() != after.until.date()]
    # Where scrapes of a server are apart, one stretch ends and another begins.
    apart = np.flatnonzero(until[:-1] != since[1:])
    torn = np.r_[until[apart], since[apart + 1]]
    cuts = [_cuts(low, high, runs) for each, low, high in zip(intervals, since, until, strict=True) if each.still]
    forced = np.array([int(since[0]), int(until[-1]), *days], dtype=np.int64)
    return np.unique(np.concatenate([free, forced, torn, *cuts]))


def _is_inside(moments: NDArray[np.int64], runs: tuple[NDArray[np.int64], NDArray[np.int64]]) -> NDArray[np.bool_]:
    """Whether any attempt runs at a moment; one that begins or ends just then does not."""
    starts, ends = runs
    if not len(starts):
        return np.zeros(len(moments), dtype=bool)
    at = np.searchsorted(starts, moments, side="left") - 1
    inside: NDArray[np.bool_] = (at >= 0) & (ends[np.maximum(at, 0)] > moments)
    return inside


def _cuts(low: int, high: int, runs: tuple[NDArray[np.int64], NDArray[np.int64]]) -> NDArray[np.int64]:
    """Ends of stretches of attempts between two moments."""
    ends = runs[1]
    return ends[(ends > low) & (ends < high)]


def _window(held: Sequence[Interval], since: int, until: int) -> Window:
    """The intervals of a window added up. A counter that one of them does not tell is not known for all of it."""
    told = set.intersection(*(set(each.counts) for each in held))
    return Window(
        since=_moment(since),
        until=_moment(until),
        counts={series: sum(each.counts[series] for each in held) for series in sorted(told, key=str)},
        reset=any(each.reset for each in held),
        starts=held[0].starts,
    )
