"""Prices of many readings at once, and the price step of a night.

Readings are grouped by the row that prices them. A test holds that every row equals `price_reading`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import date

import polars as pl

from weighbridge.pipeline.lake import Lake, polars_schema
from weighbridge.pipeline.lake.shape import complete
from weighbridge.pipeline.price.bill import AMOUNTS, COUNTS, MONEY, bill
from weighbridge.pipeline.price.book import PriceBook
from weighbridge.pipeline.price.row import PriceRow
from weighbridge.schemas.enumerations import PriceBasis, PriceStatus

_IDENTITY = ("attempt_hi", "attempt_lo", "day", "source", "child", "report", "revision")
READING_COLUMNS = (*_IDENTITY, "provider", "model", "verdict", *COUNTS)
# Days are priced together up to about so many readings, which bounds memory.
BATCH = 200_000


def price_readings(readings: pl.DataFrame | pl.LazyFrame, book: PriceBook) -> pl.DataFrame:
    """The price of each reading at the row of its provider, model and day.

    Args:
        readings: rows of the table `reading`; only `READING_COLUMNS` are used.
        book: the prices.

    Returns:
        One row of the table `priced_amount` for each reading, in the same order, on the basis `reported`.

    Raises:
        ConfigError: two patterns of the book fit one of the models equally well.
    """
    frame = readings.lazy().select(READING_COLUMNS).with_row_index("_order").collect()
    kinds = frame.select("provider", "model", "day").unique(maintain_order=True)
    rows = [book.find(provider, model, day) for provider, model, day in kinds.iter_rows()]
    by_id = {row.price_id: row for row in rows if row is not None}
    ids = pl.Series("price_id", [None if row is None else row.price_id for row in rows], dtype=pl.String)
    frame = frame.join(kinds.with_columns(ids), on=["provider", "model", "day"], how="left", nulls_equal=True)
    priced = [
        _group(part, None if price_id is None else by_id[str(price_id)])
        for (price_id,), part in frame.partition_by("price_id", as_dict=True).items()
    ]
    schema = polars_schema("priced_amount")
    if not priced:
        return pl.DataFrame(schema=schema)
    return complete("priced_amount", _of_calls(pl.concat(priced).sort("_order")))


def _of_calls(priced: pl.DataFrame) -> pl.DataFrame:
    """A row all of whose tokens are in the calls beside it costs nothing, whether or not its model has a price."""
    empty = (pl.col("input_total") == 0) & (pl.col("output_total") == 0)
    bare = empty & (pl.col("status") == str(PriceStatus.NO_PRICE)) & (pl.col("child") == 0)
    if not priced.select(bare.any()).item():
        return priced
    report = ("attempt_lo", "attempt_hi", "source", "report", "revision")
    beside = pl.col("currency").drop_nulls().unique().implode().over(report)
    made = bare & (beside.list.len() == 1)
    nothing = pl.lit(0).cast(MONEY)
    return priced.with_columns(
        *(pl.when(made).then(nothing).otherwise(name).alias(name) for name in (*AMOUNTS, "amount")),
        currency=pl.when(made).then(beside.list.first()).otherwise("currency"),
        status=pl.when(made).then(pl.lit(str(PriceStatus.PRICED))).otherwise("status"),
    )


def _group(frame: pl.DataFrame, row: PriceRow | None) -> pl.DataFrame:
    """Price the readings that one row of the book is for; its id is there already."""
    columns = bill(row)
    currency = pl.lit(None if row is None else row.currency, dtype=pl.String).alias("currency")
    return (
        frame.lazy()
        .with_columns(columns.status, currency, pl.lit(str(PriceBasis.REPORTED)).alias("basis"))
        .with_columns(columns.amounts)
        .with_columns(columns.whole)
        .collect()
    )


def refresh_prices(lake: Lake, book: PriceBook, days: Collection[date]) -> int:
    """Price the readings of these days anew and return how many amounts that makes.

    The table `priced_amount` is overwritten for exactly these days. The table `price` then holds the rows of the
    book, and such earlier rows as amounts of other days still name.

    Raises:
        ConfigError: the book is ambiguous for a model that was used.
        LakeError: the lake cannot be read or written; each day is either priced anew or as it was.
    """
    amounts = 0
    with lake.lock():
        for batch in _batches(lake, days):
            readings = lake.scan("reading", first=batch[0], last=batch[-1], columns=list(READING_COLUMNS))
            priced = price_readings(readings.filter(pl.col("day").is_in(batch)), book)
            lake.replace("priced_amount", priced, days=batch)
            amounts += priced.height
        lake.replace("price", _prices(lake, book), days=None)
    return amounts


def _batches(lake: Lake, days: Collection[date]) -> Iterator[list[date]]:
    counted = lake.scan("reading", columns=["day"]).group_by("day").len().collect()
    sizes: dict[date, int] = dict(counted.iter_rows())
    batch: list[date] = []
    for day in sorted(set(days)):
        if batch and sum(sizes.get(each, 0) for each in [*batch, day]) > BATCH:
            yield batch
            batch = []
        batch.append(day)
    if batch:
        yield batch


def _prices(lake: Lake, book: PriceBook) -> pl.DataFrame:
    rows = book.frame()
    named = lake.scan("priced_amount", columns=["price_id"]).unique().collect()["price_id"].drop_nulls()
    earlier = lake.scan("price").collect().filter(pl.col("price_id").is_in(named.to_list()))
    return pl.concat([rows, earlier.join(rows, on="price_id", how="anti")])
