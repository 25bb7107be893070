"""What each server counted between its scrapes, all its counters together.

Ranks that share the work of a server (data parallel) are added up; ranks that repeat each other (tensor, pipeline and
expert parallel) are told by their first. Servers of one model whose attempts do not say which of them they went to are
one server, told day by day.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime

import polars as pl

from weighbridge.pipeline.engine.counters import between_scrapes
from weighbridge.schemas.enumerations import CounterUnit, EngineCounter

Series = tuple[str, str | None]
STEPS = "engine-steps"  # last part of a source that tells where the engine came to rest, not at times of its own
_REPEATING = re.compile(r"(?:tp|pp|moe_ep)_rank:[1-9]")
_ABORT = "abort"
# Of a counter that names its parts, the parts that are added up to one figure.
_WHOLE = frozenset({EngineCounter.REQUESTS_FINISHED})


@dataclass(frozen=True, slots=True, order=True)
class Server:
    """One server, or all servers of a model together where `instance` is empty and there are several."""

    source: str
    engine: str
    model: str
    instance: str


@dataclass(slots=True)
class Interval:
    """From one scrape of a server to the next.

    Attributes:
        since, until: the two scrapes; of several servers the first and the last of them.
        counts: what was counted, by counter and label; a counter that is not there was not told.
        reset: a counter began anew.
        starts: counting began with it.
        zones: of several servers the stretches in which its ends lie: what ran then may be counted on either side.
    """

    since: datetime
    until: datetime
    counts: dict[Series, int] = field(default_factory=dict)
    reset: bool = False
    starts: bool = False
    zones: tuple[tuple[datetime, datetime], ...] = ()

    @property
    def still(self) -> bool:
        """Whether nothing was counted at all."""
        return not self.reset and not any(self.counts.values())


def servers(
    counters: pl.DataFrame, *, from_start: bool, apart: Collection[tuple[str, str]] = ()
) -> dict[Server, list[Interval]]:
    """Every server with the intervals between its scrapes, in order.

    Args:
        counters: rows of `engine_counter`.
        from_start: no scrape came before these (`between_scrapes`).
        apart: engine and model of servers whose attempts say which of them they went to.
    """
    rows = counters.filter(~pl.col("rank").fill_null("").str.contains(_REPEATING.pattern))
    told = between_scrapes(rows.lazy(), from_start=from_start).collect()
    of_start = told.filter(pl.col("since").is_not_null())
    found: dict[Server, dict[tuple[datetime, datetime], Interval]] = {}
    begun = dict(
        counters.filter(pl.col("started_at").is_not_null())
        .group_by("series")
        .agg(pl.col("started_at").min())
        .iter_rows()
    )
    names = ("source", "engine", "model", "instance", "since", "scraped_at", "series", "counter", "label", "unit")
    for row in of_start.select(*names, "counted", "reset").iter_rows(named=True):
        series = _series(row)
        if series is None:
            continue
        server = Server(row["source"], row["engine"], row["model"] or "", row["instance"] or "")
        place = (row["since"], row["scraped_at"])
        interval = found.setdefault(server, {}).setdefault(place, Interval(*place))
        interval.counts[series] = interval.counts.get(series, 0) + row["counted"]
        interval.reset = interval.reset or row["reset"]
        interval.starts = interval.starts or (from_start and begun.get(row["series"]) == row["since"])
    ordered = {server: _derived(held.values()) for server, held in sorted(found.items())}
    return dict(_pooled(ordered, apart))


def _series(row: Mapping[str, object]) -> Series | None:
    """Under which name a counter is added up; null where it must not be."""
    counter, label = str(row["counter"]), row["label"]
    if row["unit"] == CounterUnit.BLOCKS or row["unit"] is None:
        return None  # how many tokens a block holds is not told
    if counter in _WHOLE:
        return None if label == _ABORT else (counter, None)
    return counter, None if label is None else str(label)


def _derived(intervals: Collection[Interval]) -> list[Interval]:
    """In order, with what follows from two counters."""
    queries, hits = ((str(name), None) for name in (EngineCounter.PREEMPTED_QUERIES, EngineCounter.PREEMPTED_HITS))
    out = sorted(intervals, key=lambda each: (each.until, each.since))
    for interval in out:
        if queries in interval.counts:
            again = interval.counts[queries] - interval.counts.get(hits, 0)
            interval.counts[(str(EngineCounter.RECOMPUTED), None)] = again
    return out


def _pooled(
    found: Mapping[Server, list[Interval]], apart: Collection[tuple[str, str]]
) -> Iterator[tuple[Server, list[Interval]]]:
    """Servers of one model as one, day by day, where attempts do not tell them apart."""
    of_model: dict[tuple[str, str, str], list[Server]] = {}
    for server in found:
        of_model.setdefault((server.source, server.engine, server.model), []).append(server)
    for (source, engine, model), held in of_model.items():
        if len(held) == 1 or (engine, model) in apart:
            yield from ((server, found[server]) for server in held)
            continue
        days: dict[date, list[list[Interval]]] = {}
        for server in held:
            of_days: dict[date, list[Interval]] = {}
            for interval in found[server]:
                of_days.setdefault(interval.until.date(), []).append(interval)
            for day, own in of_days.items():
                days.setdefault(day, []).append(own)
        yield Server(source, engine, model, ""), [_of_a_day(days[day]) for day in sorted(days)]


def _of_a_day(held: Sequence[Sequence[Interval]]) -> Interval:
    """The intervals of a day of several servers as one. A counter that one of them does not tell is not known."""
    every = [interval for own in held for interval in own]
    told = set.intersection(*(set(interval.counts) for interval in every))
    begun, ended = [own[0].since for own in held], [own[-1].until for own in held]
    return Interval(
        since=max(begun),
        until=max(ended),
        counts={series: sum(interval.counts[series] for interval in every) for series in told},
        reset=any(interval.reset for interval in every),
        zones=((min(begun), max(begun)), (min(ended), max(ended))),
    )
