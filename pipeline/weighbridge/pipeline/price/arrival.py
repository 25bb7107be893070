"""At what minute a request arrived, for readings whose price hangs on the time of day."""

from __future__ import annotations

import polars as pl

from weighbridge.pipeline.lake.records import Records
from weighbridge.pipeline.price.book import PriceBook

_KEY = ("attempt_hi", "attempt_lo")
ARRIVAL_COLUMNS = (*_KEY, "source", "revision", "arrived_at")
_MINUTE = pl.Datetime("us", "UTC")


def arrivals_of(records: Records, book: PriceBook) -> pl.LazyFrame | None:
    """The arrivals of all attempts, where any price of the book hangs on them."""
    return records.scan("attempt", columns=list(ARRIVAL_COLUMNS)) if book.by_the_hour else None


def with_minutes(readings: pl.DataFrame, book: PriceBook, arrivals: pl.DataFrame | pl.LazyFrame | None) -> pl.DataFrame:
    """The readings with `_minute`: when the request arrived, UTC, to the minute; null where nothing hangs on it.

    The source that made the reading says it, else the first time that any source names.

    Args:
        readings: with attempt key, source, provider and model.
        book: the prices.
        arrivals: rows of `attempt`; null: no time is known.
    """
    none = readings.with_columns(_minute=pl.lit(None, dtype=_MINUTE))
    if arrivals is None or not book.by_the_hour:
        return none
    models = readings.select("provider", "model").unique()
    timed = [book.hangs_on_hours(provider, model) for provider, model in models.iter_rows()]
    asked = readings.join(models.filter(pl.Series(timed, dtype=pl.Boolean)), on=["provider", "model"], how="semi")
    if asked.is_empty():
        return none
    told = (
        arrivals.lazy()
        .select(ARRIVAL_COLUMNS)
        .join(asked.lazy().select(_KEY).unique(), on=list(_KEY), how="semi")
        .filter(pl.col("revision") == pl.col("revision").max().over(*_KEY, "source"))
        .drop_nulls("arrived_at")
        .collect()
    )
    own = told.group_by(*_KEY, "source").agg(_own=pl.col("arrived_at").min())
    any_ = told.group_by(_KEY).agg(_any=pl.col("arrived_at").min())
    found = readings.join(own, on=[*_KEY, "source"], how="left", maintain_order="left").join(
        any_, on=list(_KEY), how="left", maintain_order="left"
    )
    hangs = pl.struct("provider", "model").is_in(
        asked.select(pl.struct("provider", "model").unique()).to_series().implode()
    )
    minute = pl.coalesce("_own", "_any").dt.truncate("1m").cast(_MINUTE)
    return found.with_columns(_minute=pl.when(hangs).then(minute)).drop("_own", "_any")
