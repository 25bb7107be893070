"""Which rows of a lake belong to the close of a month: part by part, each sorted by key."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import datetime, time, timedelta

import polars as pl

from weighbridge.pipeline.close.batches import batches
from weighbridge.pipeline.close.layout import ALL, BLANKED, CLOSED, NEIGHBOURS, PART_ROWS, TENANT, PartName
from weighbridge.pipeline.reconcile.frames import KEY
from weighbridge.pipeline.reconcile.month import Month
from weighbridge.pipeline.reconcile.period import ends
from weighbridge.schemas.table import Table

# Rows of these tables that lie on another day than the rest of their attempt are needed to reconcile it again.
_OF_ATTEMPTS = ("attempt", "child", "engine_share", "priced_amount", "reading")
# Tables whose rows say which file they came from.
_FROM_FILES = (
    *("attempt", "usage_report", "reading", "gap", "quarantine", "alias", "foreign_id", "child"),
    *("usage_period", "engine_counter"),
)
EVERY_PERIOD = "all"


def parts_of(month: Month, carried: Collection[str] = ()) -> Iterator[tuple[PartName, pl.DataFrame]]:
    """Every part of the close of a month but its tenants, in the order of their names; parts without rows are left out.

    Args:
        month: the month, with the prices that were used in the lake.
        carried: ids of findings of earlier months that are carried into this one.
    """
    for name in sorted(CLOSED):
        table = CLOSED[name]
        if table is TENANT:
            continue
        for part, rows in _daily(month, table) if table.daily else [(ALL, _whole(month, name, carried))]:
            if rows.height:
                yield PartName(name, part), ordered(table, rows)


def ordered(table: Table, rows: pl.DataFrame) -> pl.DataFrame:
    """The rows in the one order they have in a close: by key, and by whatever else tells equal keys apart."""
    blank = [pl.lit(None, dtype=rows.schema[name]).alias(name) for name in BLANKED.get(table.name, ())]
    held = rows.select(table.names).with_columns(blank)
    if held.select(table.key).is_duplicated().any():
        others = [name for name in table.names if name not in table.key and not held.schema[name].is_nested()]
        return held.sort(*table.key, *others, maintain_order=True)
    return held.sort(table.key)


def _daily(month: Month, table: Table) -> Iterator[tuple[str, pl.DataFrame]]:
    """The days of a table, a few at a time, and the rows of other days that reconciling needs."""
    first, last = ends(month.period)
    for batch in batches([month.lake], [table.name], first, last, PART_ROWS):
        rows = month.lake.scan(table.name, first=batch[0], last=batch[-1]).filter(pl.col("day").is_in(batch))
        yield batch[0].isoformat(), rows.collect(engine="streaming")
    if table.name in (*_OF_ATTEMPTS, "alias"):
        # Which attempts are one is told from the groups they are in, so these are held whole.
        wanted = month.grouped
        if table.name in _OF_ATTEMPTS:
            wanted = pl.concat([wanted, month.placement.moved.select(KEY)]).unique()
        outside = month.lake.scan(table.name).filter(~pl.col("day").is_between(first, last))
        if wanted.height:
            yield NEIGHBOURS, outside.join(wanted.lazy(), on=list(KEY), how="semi").collect(engine="streaming")
    if table.name == "gap":
        yield NEIGHBOURS, _gaps_beside(month)


def _gaps_beside(month: Month) -> pl.DataFrame:
    """Known losses of other days that reach into the month, or join one that does, or name an attempt of it."""
    first, last = ends(month.period)
    gaps = month.lake.scan("gap").collect()
    began, ended = pl.col("began_at").dt.date(), pl.col("ended_at").dt.date()
    spans = gaps.with_columns(
        _first=pl.min_horizontal("day", began.fill_null(pl.col("day"))),
        _last=pl.max_horizontal("day", ended.fill_null(pl.col("day"))),
    )
    begin, end = first, last
    while True:
        inside = spans.filter((pl.col("_first") <= end) & (pl.col("_last") >= begin))
        reach = inside.select(pl.col("_first").min(), pl.col("_last").max()).row(0) if inside.height else (begin, end)
        if (min(begin, reach[0]), max(end, reach[1])) == (begin, end):
            break
        begin, end = min(begin, reach[0]), max(end, reach[1])
    near = (pl.col("_first") <= end) & (pl.col("_last") >= begin)
    named = spans.filter(pl.col("attempt_lo").is_not_null() & ~near)
    if named.height:
        own = month.read("reading", KEY).collect(engine="streaming").unique()
        named = named.join(own, on=list(KEY), how="semi")
    held = pl.concat([spans.filter(near), named])
    return held.filter(~pl.col("day").is_between(first, last)).select(gaps.columns)


def _whole(month: Month, table: str, carried: Collection[str]) -> pl.DataFrame:
    """The rows of a table that is not kept by day which the month is about, or rests on."""
    first, last = ends(month.period)
    lake, frame = month.lake, month.lake.scan(table)
    own = pl.col("period").is_in([month.period, EVERY_PERIOD]) | pl.col("finding_id").is_in(list(carried))
    begin = datetime.combine(first, time.min)
    end = datetime.combine(last, time.min) + timedelta(days=1)
    match table:
        case "adjustment" | "invoice_gap" | "invoice_cause" | "allocated":
            frame = frame.filter(pl.col("period") == month.period)
        case "recount_constant":
            # What the month's own are held against is that of the months before.
            frame = frame.filter(pl.col("period") <= month.period)
        case "finding":
            frame = frame.filter(own)
        case "finding_status":
            about = lake.scan("finding", columns=["finding_id", "period"]).filter(own)
            frame = frame.join(about.select("finding_id"), on="finding_id", how="semi")
        case "change" | "audit_tolerance":
            pass  # who changed what decides figures may lie long before the month, and so may what tolerances rest on
        case "recommendation":
            frame = frame.filter(pl.col("changed_at").dt.replace_time_zone(None) < end)
        case "invoice_line" | "invoice_detail":
            of = ("period_start", "period_end") if table == "invoice_line" else ("billing_start", "billing_end")
            starts, stops = (pl.col(name).dt.replace_time_zone(None) for name in of)
            frame = frame.filter(((starts < end) & (stops > begin)).fill_null(value=True))
        case "currency_rate":
            # A rate of a day before may stand in where a contract says so, so a month holds those of its bills.
            frame = frame.filter(pl.col("rate_day").is_between(first - timedelta(days=31), last + timedelta(days=31)))
        case "price" | "price_tier" | "price_fee":
            frame = frame.filter(pl.col("price_id").is_in(list(month.prices.rows)))
        case "receipt":
            early = (pl.col("first_day") <= last).fill_null(value=True)
            frame = frame.filter(early & (pl.col("last_day") >= first).fill_null(value=True))
        case "segment" | "quarantine_status":
            frame = frame.filter(pl.col("segment").is_in(files_of(month)))
        case _:
            raise NotImplementedError(f"which rows of {table} belong to a month is not said; say it in `month_rows`")
    return frame.collect()


def files_of(month: Month) -> list[str]:
    """Digests of the files that rows of the month came from."""
    first, last = ends(month.period)
    named: set[str] = set()
    for table in _FROM_FILES:
        found = month.lake.scan(table, first=first, last=last, columns=["segment"]).unique().collect(engine="streaming")
        named.update(found["segment"].drop_nulls())
    return sorted(named)
