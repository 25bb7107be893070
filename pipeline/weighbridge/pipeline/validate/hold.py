"""Rows of the lake that break a rule, held in quarantine by their place; what is held is what was found last."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import date

import polars as pl

from weighbridge.pipeline.lake import Lake, polars_schema
from weighbridge.pipeline.validate.offenders import Offence
from weighbridge.pipeline.validate.rule import placed
from weighbridge.pipeline.validate.violation import named
from weighbridge.schemas.enumerations import QuarantineReason
from weighbridge.schemas.tables import NAME, TABLES

TABLE = "quarantine"
# What stands for the importer of a file that has no account, or one whose importer has no name.
NO_ACCOUNT = "unaccounted"


def held(offence: Offence) -> pl.DataFrame:
    """The places of an offence that can be held."""
    if not placed(TABLES[offence.table]):
        return offence.places.clear()
    return offence.places.filter(pl.all_horizontal(pl.col("day", "segment", "segment_row").is_not_null()))


def hold(lake: Lake, offences: Iterable[Offence], looked: Mapping[str, Collection[date | None]]) -> int:
    """Make the rows that break rules of the tables and days looked at exactly those that are held of them.

    Records that could not be read, and rows of other tables and days, stay. Nothing is written where nothing changed.

    Args:
        lake: the lake; its lock is held.
        offences: what was found.
        looked: table -> the days that were looked at; null among them: all of it, also days that have no rows any more.

    Returns:
        How many rows are held of them; one that breaks several rules is held for each.
    """
    found = [_rows(offence) for offence in offences]
    importers = lake.scan("segment", columns=["segment", "importer"]).collect()
    fresh = pl.concat(found) if found else pl.DataFrame(schema={n: polars_schema(TABLE)[n] for n in _COLUMNS})
    fresh = fresh.join(importers, on="segment", how="left", maintain_order="left").with_columns(
        pl.when(pl.col("importer").str.contains(f"^(?:{NAME})$")).then("importer").otherwise(pl.lit(NO_ACCOUNT)),
        reason=pl.lit(str(QuarantineReason.CONTRACT)),
    )
    gone = pl.col("rule").is_not_null() & _looked(looked)
    days = {*fresh["day"].unique(), *lake.scan(TABLE).filter(gone).select("day").unique().collect()["day"]}
    if days:
        kept = lake.scan(TABLE).filter(pl.col("day").is_in(list(days)), ~gone.fill_null(value=False)).collect()
        lake.replace(TABLE, pl.concat([kept, fresh], how="diagonal"), days=days)
    return fresh.height


_COLUMNS = ("segment", "line", "day", "source", "path", "table_name", "rule")


def _rows(offence: Offence) -> pl.DataFrame:
    rows = held(offence)
    return rows.select(
        "segment",
        pl.col("segment_row").alias("line"),
        "day",
        pl.Series("source", [named(source) for source in rows["source"]], dtype=pl.String),
        path=pl.lit(offence.rule.path),
        table_name=pl.lit(offence.table),
        rule=pl.lit(offence.rule.name),
    )


def _looked(looked: Mapping[str, Collection[date | None]]) -> pl.Expr:
    """Quarantine rows of the tables and days that were looked at."""
    whole = [table for table, days in looked.items() if None in days]
    out = pl.col("table_name").is_in(whole)
    for table, days in looked.items():
        if table not in whole:
            out |= (pl.col("table_name") == table) & pl.col("day").is_in([day for day in days if day is not None])
    return out
