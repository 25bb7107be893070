"""Rows that have the same key: found exactly, bucket by bucket, so that memory stays flat however many rows there are.

Two rows with the same key have the same first part of it, and the same first part has the same bucket (its low six
bits). So only the first part is read of all rows; the whole key is compared for the few rows whose first part is not
alone. Rows of the days that are looked at are held against all days of the table: the same key on two days is one row
too many. A recorder's ids begin with their time, so files of other times are passed over by their statistics.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from datetime import date

import polars as pl

from weighbridge.pipeline.lake import Lake
from weighbridge.pipeline.lake.failure import told
from weighbridge.pipeline.lake.files import Part
from weighbridge.pipeline.lake.shape import polars_schema
from weighbridge.pipeline.lake.words import files
from weighbridge.pipeline.validate.offenders import PLACES
from weighbridge.schemas.identity import BUCKETS
from weighbridge.schemas.tables import TABLES

# First parts of keys held at a time, 8 bytes each and as much again to sort them.
AT_ONCE = 16_000_000
_PLACE = ("segment", "segment_row")


def repeated(lake: Lake, table: str, days: Collection[date | None], parts: Sequence[Part]) -> pl.DataFrame:
    """The rows of these days whose key another row had first.

    Of rows with the same key the first one, by day, file and line, is the one that counts; all others are returned.

    Args:
        lake: the lake; its lock is held.
        table: the table.
        days: the days to look at; null alone for a table that is not kept by day.
        parts: all files of the table.

    Returns:
        Where they stand: those of `PLACES` the table has, and `period_start`; its first key column where it has none.
    """
    about = TABLES[table]
    kept = [name for name in (*PLACES, "period_start") if name in about.names] or [about.key[0]]
    wanted = list(dict.fromkeys([*about.key, *kept]))
    with told(f"validating {table}", lake.root):
        found = [_repeated(rows.select(wanted), list(about.key), kept, days) for rows in _suspects(table, days, parts)]
    return pl.concat(found) if found else pl.DataFrame(schema={name: polars_schema(table)[name] for name in kept})


def _repeated(rows: pl.LazyFrame, key: list[str], kept: list[str], days: Collection[date | None]) -> pl.DataFrame:
    several = rows.group_by(key).agg(rows=pl.len()).filter(pl.col("rows") > 1).select(key).collect(engine="streaming")
    if several.is_empty():
        return rows.select(kept).clear().collect()
    order = [name for name in ("day", *_PLACE) if name in kept]
    alike = rows.join(several.lazy(), on=key, how="semi", nulls_equal=True).collect(engine="streaming")
    again = alike.sort([*key, *order]).filter(~pl.struct(key).is_first_distinct()).select(kept)
    return again if "day" not in kept else again.filter(pl.col("day").is_in([day for day in days if day is not None]))


def _suspects(table: str, days: Collection[date | None], parts: Sequence[Part]) -> Iterator[pl.LazyFrame]:
    """Rows among which those with a repeated key are, a pass over some buckets at a time."""
    lead, second = (*TABLES[table].key, "")[:2]
    looked = [part for part in parts if part.day in days]
    others = [part for part in parts if part.day not in days]
    total = sum(part.rows for part in looked)
    if not total:
        return
    rows, inside = _together(table, parts), _together(table, looked)
    if polars_schema(table)[lead] != pl.Int64():
        yield rows
        return
    passes = min(max(1, -(-total // AT_ONCE)), BUCKETS)
    for number in range(passes):
        bucket = pl.lit(value=True) if passes == 1 else (pl.col(lead) & (BUCKETS - 1)) % passes == number
        leads = inside.filter(bucket).select(lead).collect(engine="streaming")[lead].sort()
        alike = [leads.filter((leads == leads.shift(1)).fill_null(value=False))]
        if others:
            alike.append(_shared(inside.filter(bucket), _together(table, others).filter(bucket), leads, second))
        suspects = pl.concat(alike).unique()
        if suspects.len():
            yield rows.filter(bucket).join(suspects.to_frame().lazy(), on=lead, how="semi")


def _together(table: str, parts: Sequence[Part]) -> pl.LazyFrame:
    return pl.concat([rows for _, rows in files(table, parts)])


def _shared(inside: pl.LazyFrame, others: pl.LazyFrame, leads: pl.Series, second: str) -> pl.Series:
    """The first parts that rows of other days have too; the second part bounds which files need to be read."""
    ends = inside.select(pl.col(second).min().alias("low"), pl.col(second).max().alias("high"))
    low, high = ends.collect(engine="streaming").row(0)
    near = others.filter(pl.col(second).is_between(low, high)).select(leads.name)
    held = near.join(leads.unique().to_frame().lazy(), on=leads.name, how="semi").unique()
    return held.collect(engine="streaming")[leads.name]
