"""What only the attempt of a reading knows of its terms: when the request arrived, and which tier it asked for."""

from __future__ import annotations

import polars as pl

from weighbridge.pipeline.lake.records import Records
from weighbridge.pipeline.price.book import PriceBook

_KEY = ("attempt_hi", "attempt_lo")
ARRIVAL_COLUMNS = (*_KEY, "source", "revision", "arrived_at", "tier_requested")
_MINUTE = pl.Datetime("us", "UTC")


def arrivals_of(records: Records, book: PriceBook) -> pl.LazyFrame:
    """What attempts may say about terms which a price of the book hangs on."""
    attempts = records.scan("attempt", columns=list(ARRIVAL_COLUMNS))
    return attempts if book.by_the_hour else attempts.filter(pl.col("tier_requested").is_not_null())


def with_arrivals(
    readings: pl.DataFrame, book: PriceBook, arrivals: pl.DataFrame | pl.LazyFrame | None
) -> pl.DataFrame:
    """The readings with `_minute` and `_tier`.

    `_minute` is when the request arrived, UTC, to the minute; null where nothing hangs on it or it is not known.
    `_tier` is the service tier: that of the report, else the one that was asked for. The source that made the reading
    says both, else the first time, and the one tier, that any source names.

    Args:
        readings: with attempt key, source, provider, model and service_tier.
        book: the prices.
        arrivals: rows of `attempt`; null: nothing is known.
    """
    models = readings.select("provider", "model").unique()
    timed = pl.Series("_timed", [book.hangs_on_hours(*model) for model in models.iter_rows()], dtype=pl.Boolean)
    models = models.with_columns(timed)
    told = _told(readings, arrivals, models)
    if told is None or told.is_empty():
        return readings.with_columns(_minute=pl.lit(None, dtype=_MINUTE), _tier=pl.col("service_tier"))
    single = pl.when(pl.col("tier_requested").drop_nulls().n_unique() == 1).then(
        pl.col("tier_requested").drop_nulls().first()
    )
    own = told.group_by(*_KEY, "source").agg(_own=pl.col("arrived_at").min(), _own_tier=single)
    others = told.group_by(_KEY).agg(_any=pl.col("arrived_at").min(), _any_tier=single)
    found = readings.join(own, on=[*_KEY, "source"], how="left", maintain_order="left").join(
        others, on=list(_KEY), how="left", maintain_order="left"
    )
    found = found.join(models, on=["provider", "model"], how="left", nulls_equal=True, maintain_order="left")
    minute = pl.coalesce("_own", "_any").dt.truncate("1m").cast(_MINUTE)
    return found.with_columns(
        _minute=pl.when("_timed").then(minute), _tier=pl.coalesce("service_tier", "_own_tier", "_any_tier")
    ).drop("_own", "_any", "_own_tier", "_any_tier", "_timed")


def _told(
    readings: pl.DataFrame, arrivals: pl.DataFrame | pl.LazyFrame | None, models: pl.DataFrame
) -> pl.DataFrame | None:
    """The last revision of the attempts of these readings; where no price hangs on the hour, of those with a tier."""
    if arrivals is None:
        return None
    told = arrivals.lazy().select(ARRIVAL_COLUMNS)
    if not models["_timed"].any():
        told = told.filter(pl.col("tier_requested").is_not_null())
    return (
        told.join(readings.lazy().select(_KEY).unique(), on=list(_KEY), how="semi")
        .filter(pl.col("revision") == pl.col("revision").max().over(*_KEY, "source"))
        .collect()
    )
