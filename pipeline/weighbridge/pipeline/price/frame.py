"""Prices of many readings at once, and the price step of a night.

Readings are grouped by the row that prices them. A test holds that every row equals `price_reading`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import date
from typing import Any

import polars as pl

from weighbridge.pipeline.lake import Lake, polars_schema
from weighbridge.pipeline.lake.shape import complete
from weighbridge.pipeline.price.arrival import arrivals_of, with_arrivals
from weighbridge.pipeline.price.bill import AMOUNTS, COUNTS, MONEY, unpriced
from weighbridge.pipeline.price.book import PriceBook
from weighbridge.pipeline.price.fee_frame import USED, with_fees
from weighbridge.pipeline.price.found import refresh_findings
from weighbridge.pipeline.price.row import PriceRow
from weighbridge.pipeline.price.terms import Served
from weighbridge.pipeline.price.tier_frame import agreed, in_brackets
from weighbridge.schemas.enumerations import PriceBasis, PriceStatus

_IDENTITY = ("attempt_hi", "attempt_lo", "day", "source", "child", "report", "revision")
_TERMS = ("service_tier", "batch", "region")
READING_COLUMNS = (*_IDENTITY, "provider", "model", "verdict", *COUNTS, *_TERMS, *USED)
# Days are priced together up to about so many readings, which bounds memory.
BATCH = 200_000
_NAMED = ("price_id", "currency", "amount_fees", "price_tier")
_TOLD = ("_order", *_IDENTITY, "input_total", "output_total", "service_tier", "status", *AMOUNTS, "amount", *_NAMED)
_KIND = ("provider", "model", "day", "_tier", "batch", "region", "_minute")


def price_readings(
    readings: pl.DataFrame | pl.LazyFrame, book: PriceBook, arrivals: pl.DataFrame | pl.LazyFrame | None = None
) -> pl.DataFrame:
    """The price of each reading at the row of its provider, model, day and terms.

    Args:
        readings: rows of the table `reading`; only `READING_COLUMNS` are used.
        book: the prices.
        arrivals: rows of the table `attempt` (`ARRIVAL_COLUMNS`), which say when a request arrived
            and which tier it asked for.

    Returns:
        One row of the table `priced_amount` for each reading, in the same order, on the basis `reported`.

    Raises:
        ConfigError: two patterns of the book fit one of the models equally well.
    """
    frame = readings.lazy().select(READING_COLUMNS).with_row_index("_order").collect()
    frame = with_arrivals(frame, book, arrivals)
    kinds = frame.select(_KIND).unique(maintain_order=True)
    numbers: dict[tuple[PriceRow | None, ...], int] = {}
    found = [_rows(book, kind, numbers) for kind in kinds.iter_rows()]
    number = pl.Series("_rows", found, dtype=pl.Int64)
    frame = (
        frame.join(kinds.with_columns(number), on=list(_KIND), how="left", nulls_equal=True, maintain_order="left")
        .drop("_minute", "service_tier")
        .rename({"_tier": "service_tier"})
    )
    possible = {number: rows for rows, number in numbers.items()}
    priced = [
        _group(part, possible[int(str(number))])
        for (number,), part in frame.partition_by("_rows", as_dict=True).items()
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
        *(pl.when(made).then(nothing).otherwise(name).alias(name) for name in (*AMOUNTS, "amount_fees", "amount")),
        currency=pl.when(made).then(beside.list.first()).otherwise("currency"),
        status=pl.when(made).then(pl.lit(str(PriceStatus.PRICED))).otherwise("status"),
    )


def _rows(book: PriceBook, kind: tuple[Any, ...], numbers: dict[Any, int]) -> int:
    """The number of the rows that readings of this kind may be priced at."""
    provider, model, day, tier, batch, region, minute = kind
    rows: tuple[Any, ...] = book.possible(provider, model, day, Served(tier, batch, region, minute))
    if not rows:
        rows = (book.knows(provider, model, day),)
    return numbers.setdefault(rows, len(numbers))


def _group(readings: pl.DataFrame, rows: tuple[PriceRow | bool | None, ...]) -> pl.DataFrame:
    """Price readings at the rows that may be for them: one as a rule."""
    priced = [_at_row(readings, row) for row in rows]
    told = agreed([each.select(_TOLD).sort("_order") for each in priced], PriceStatus.TERMS_UNKNOWN)
    return told.with_columns(basis=pl.lit(str(PriceBasis.REPORTED)))


def _at_row(readings: pl.DataFrame, row: PriceRow | bool | None) -> pl.DataFrame:
    if row is None or isinstance(row, bool):
        told = unpriced(PriceStatus.TERMS_UNPRICED if row else PriceStatus.NO_PRICE).of(readings)
        named = {name: polars_schema("priced_amount")[name] for name in _NAMED}
        return told.with_columns(pl.lit(None, dtype=kind).alias(name) for name, kind in named.items())
    priced = in_brackets(with_fees(readings, row), row)
    return priced.with_columns(price_id=pl.lit(row.price_id), currency=pl.lit(row.currency))


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
            own = readings.filter(pl.col("day").is_in(batch))
            priced = price_readings(own, book, arrivals_of(lake, book))
            lake.replace("priced_amount", priced, days=batch)
            amounts += priced.height
        for table, rows in _prices(lake, book).items():
            lake.replace(table, rows, days=None)
        refresh_findings(lake, days)
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


def _prices(lake: Lake, book: PriceBook) -> dict[str, pl.DataFrame]:
    named = lake.scan("priced_amount", columns=["price_id"]).unique().collect()["price_id"].drop_nulls()
    tables = book.frames()
    known = tables["price"].select("price_id")
    for table, rows in tables.items():
        earlier = lake.scan(table).collect().filter(pl.col("price_id").is_in(named.to_list()))
        tables[table] = pl.concat([rows, earlier.join(known, on="price_id", how="anti")])
    return tables
