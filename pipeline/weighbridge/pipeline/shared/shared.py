"""The shared edition of the lake: histograms of attempts for everybody, derived from the billing domain day by day.

A day is released once, when some whole days have passed after it (`shared_grace_days`, by the calendar, in UTC) and no
more data is expected: also the last days of traffic that has ended, and none of days that are still to come. Two
releases of one day could be subtracted from each other, so it is made again only where somebody asks for it; what came
late stays out of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import groupby

import polars as pl

from weighbridge.pipeline.lake.lake import Lake
from weighbridge.pipeline.lake.shape import polars_schema
from weighbridge.pipeline.shared.bins import binned, edges, merged
from weighbridge.pipeline.shared.cells import labels
from weighbridge.pipeline.shared.facts import CELL, Facts, amount_of, facts, plausible
from weighbridge.schemas.enumerations import SharedMeasure

TABLE = "shared_histogram"
# Days are derived together up to about so many rows of `reconciled`, two an attempt, which bounds memory.
BATCH_ROWS = 800_000
GRACE_DAYS = 2
_HOURS = tuple(range(25))
_TOKENS, _TIMES = edges(2), edges(4)
# Measure -> unit and bins; money has a unit of its own per currency.
_MEASURES: dict[SharedMeasure, tuple[str, tuple[int, ...]]] = {
    SharedMeasure.ARRIVAL: ("hour", _HOURS),
    SharedMeasure.INPUT_REPORTED: ("tokens", _TOKENS),
    SharedMeasure.OUTPUT_REPORTED: ("tokens", _TOKENS),
    SharedMeasure.CACHE_READ: ("tokens", _TOKENS),
    SharedMeasure.REASONING: ("tokens", _TOKENS),
    SharedMeasure.INPUT_OBSERVED: ("tokens", _TOKENS),
    SharedMeasure.OUTPUT_OBSERVED: ("tokens", _TOKENS),
    SharedMeasure.QUEUE: ("us", _TIMES),
    SharedMeasure.FIRST_TOKEN: ("us", _TIMES),
    SharedMeasure.DURATION: ("us", _TIMES),
}
_NAMED = tuple(f"shared_{name}" for name in CELL)


@dataclass(frozen=True, slots=True)
class SharedResult:
    """What a call released.

    Attributes:
        days: the days that were released now.
        kept: days that were released before and stay as they were.
        small: days with fewer than eleven attempts, of which nothing may be told.
        rows: rows released now.
    """

    days: tuple[date, ...]
    kept: tuple[date, ...]
    small: tuple[date, ...]
    rows: int


def derive(lake: Lake, *, days: Collection[date], again: bool = False) -> SharedResult:
    """Release the histograms of these days.

    Args:
        lake: its days have been reconciled.
        days: UTC days; those without attempts are passed over.
        again: also days that were released before. Whoever holds both releases can subtract one from the other.

    Raises:
        LakeBusyError: another process is writing.
        LakeError: the lake cannot be read or written; days that were released stay so.
    """
    asked = set(days) & set(lake.days("reconciled"))
    before = asked & set(lake.days(TABLE))
    told: set[date] = set()
    rows = 0
    with lake.lock():
        for batch in _batches(lake, sorted(asked if again else asked - before)):
            made = histograms(facts(lake, batch))
            lake.replace(TABLE, made, days=batch)
            told |= set(made["day"])
            rows += made.height
    fresh = asked if again else asked - before
    kept = () if again else tuple(sorted(before))
    return SharedResult(tuple(sorted(told)), kept, tuple(sorted(fresh - told)), rows)


def settled(lake: Lake, today: date, grace_days: int = GRACE_DAYS) -> list[date]:
    """The reconciled days after which `grace_days` whole days have passed, whether or not they were released.

    Args:
        lake: the lake.
        today: the UTC day it is, which has not passed.
        grace_days: how many, of the calendar: days without data count too, days after today never.
    """
    newest = today - timedelta(days=grace_days + 1)
    return [day for day in lake.days("reconciled") if day <= newest]


def due(lake: Lake, today: date, grace_days: int = GRACE_DAYS) -> list[date]:
    """The days that may be released (`settled`) and were not yet."""
    released = set(lake.days(TABLE))
    return [day for day in settled(lake, today, grace_days) if day not in released]


def histograms(given: Facts) -> pl.DataFrame:
    """Rows of the table `shared_histogram` of the days of these attempts."""
    cells = given.rows.group_by("day", *CELL).len().with_columns(pl.col("len").cast(pl.Int64))
    named = given.rows.lazy().join(_labelled(cells).lazy(), on=["day", *CELL], how="inner").collect()
    parts = [_rows(named, str(measure), str(measure), *about) for measure, about in _MEASURES.items()]
    parts += [_rows(named, str(SharedMeasure.AMOUNT), amount_of(unit), unit, _TOKENS) for unit in given.currencies]
    return pl.concat(parts)


def _labelled(cells: pl.DataFrame) -> pl.DataFrame:
    """Day and cell -> the names it is released under; cells of too small days are left out."""
    rows: list[tuple[object, ...]] = []
    for (day,), of_day in cells.partition_by("day", as_dict=True).items():
        counts = {tuple(cell): attempts for *cell, attempts in of_day.select(*CELL, "len").iter_rows()}
        rows += [(day, *cell, *label) for cell, label in labels(counts).items()]
    schema = {"day": pl.Date, **dict.fromkeys((*CELL, *_NAMED), pl.String)}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _rows(named: pl.DataFrame, measure: str, column: str, unit: str, begins: tuple[int, ...]) -> pl.DataFrame:
    counted = (
        named.select("day", *_NAMED, bin=binned(plausible(named[column]), begins))
        .group_by("day", *_NAMED, "bin")
        .len()
        .sort("day", *_NAMED, "bin", nulls_last=False)
    )
    rows: list[tuple[object, ...]] = []
    for cell, group in groupby(counted.iter_rows(), key=lambda row: row[: len(_NAMED) + 1]):
        counts = [(place, attempts) for *_, place, attempts in group]
        if measure != SharedMeasure.ARRIVAL and all(place is None for place, _ in counts):
            continue  # nobody knows it of any of them
        rows += [(*cell, measure, unit, row.low, row.high, row.attempts) for row in merged(counts, begins)]
    return pl.DataFrame(rows, schema=polars_schema(TABLE), orient="row")


def _batches(lake: Lake, days: Sequence[date]) -> Iterator[list[date]]:
    if not days:
        return
    counted = lake.scan("reconciled", first=days[0], last=days[-1], columns=["day"]).group_by("day").len().collect()
    sizes: dict[date, int] = dict(counted.iter_rows())
    batch: list[date] = []
    for day in days:
        if batch and sum(sizes.get(each, 0) for each in [*batch, day]) > BATCH_ROWS:
            yield batch
            batch = []
        batch.append(day)
    if batch:
        yield batch
