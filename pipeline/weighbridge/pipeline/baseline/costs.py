"""What tokens and requests of a day cost, from the amounts they were priced at. An unknown price stays unknown."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import ROUND_HALF_EVEN, Context, Decimal

import polars as pl

from weighbridge.pipeline.baseline.usage import KEY
from weighbridge.pipeline.lake.records import Records
from weighbridge.pipeline.price.row import PriceRow
from weighbridge.pipeline.price.table import price_rows
from weighbridge.schemas.enumerations import Modality, PriceBasis, TokenClass
from weighbridge.schemas.lattice import REPORTED_CLASSES

# A report may be booked some days after its attempt.
LATE = timedelta(days=2)
_MILLION = Decimal(10) ** 6
_PLACES = Decimal(1).scaleb(-18)
_EXACT = Context(prec=60, rounding=ROUND_HALF_EVEN)
_AMOUNTS = [f"amount_{name}" for name in REPORTED_CLASSES]
_READ = [*KEY, "source", "child", "revision", "price_id", "price_tier", "currency", "amount", *_AMOUNTS]


@dataclass(frozen=True, slots=True)
class SeriesCost:
    """What a series cost on a day.

    Attributes:
        token: class -> cost of one token; a class of unknown price is not among them.
        request: cost of all attempts divided by the requests; null where any usage has no price.
        retries: cost of the attempts that were not the first of their request; null where that is not known.
        currency: of all of them.
    """

    token: Mapping[str, Decimal]
    request: Decimal | None
    retries: Decimal | None
    currency: str | None


UNPRICED = SeriesCost({}, None, None, None)


def times(number: int | Decimal, cost: Decimal) -> Decimal:
    """An exact product, rounded to the 18 places of an amount."""
    return _EXACT.quantize(_EXACT.multiply(Decimal(number), cost), _PLACES)


def share(part: Decimal, whole: int) -> Decimal:
    """An amount divided by a count."""
    return _EXACT.divide(part, Decimal(whole))


def series_costs(records: Records, attempts: pl.DataFrame, day: date) -> dict[int, SeriesCost]:
    """What the attempts of a day cost, by series.

    Args:
        records: tables `priced_amount` and those of prices.
        attempts: rows of `History.judged` of that day, of the series asked about.
        day: the day.
    """
    keys = attempts.lazy().select(KEY)
    amounts = _amounts(records, keys, day, day + LATE)
    joined = attempts.join(amounts, on=KEY, how="left")
    book = price_rows(records, amounts["price_id"].drop_nulls().unique().to_list())
    return {int(series): _cost(rows, book) for (series,), rows in joined.partition_by("series", as_dict=True).items()}


def _amounts(records: Records, keys: pl.LazyFrame, first: date, last: date) -> pl.DataFrame:
    """One row per attempt: what the first report of its first source costs, all children together."""
    rows = first_reports(records, first, last, _READ).join(keys, on=KEY, how="semi")
    return merged(rows.collect(engine="streaming"), ("amount", *_AMOUNTS), ("currency", "price_id", "price_tier"))


def first_reports(records: Records, first: date, last: date, columns: Collection[str]) -> pl.LazyFrame:
    """The amounts of first reports that are booked on these days."""
    rows = records.scan("priced_amount", first=first, last=last, columns=[*columns, "report", "basis"])
    own = rows.filter((pl.col("report") == 0) & (pl.col("basis") == str(PriceBasis.REPORTED)))
    return own.select(list(columns))


def merged(amounts: pl.DataFrame, summed: Collection[str], alike: Collection[str]) -> pl.DataFrame:
    """One row per attempt: the last revision of its first source, all children together.

    Args:
        amounts: rows of `priced_amount`.
        summed: columns that are added up; null where one child leaves it open.
        alike: columns that are kept where all children say the same.
    """
    latest = amounts.filter(pl.col("revision") == pl.col("revision").max().over(*KEY, "source", "child"))
    first_source = latest.filter(pl.col("source") == pl.col("source").min().over(KEY))
    whole = [pl.when(pl.col(name).null_count() == 0).then(pl.col(name).sum()).alias(name) for name in summed]
    one = [pl.when(pl.col(name).n_unique() == 1).then(pl.col(name).first()).alias(name) for name in alike]
    return first_source.group_by(KEY).agg(*whole, *one)


def _cost(rows: pl.DataFrame, book: Mapping[str, PriceRow]) -> SeriesCost:
    currencies = rows["currency"].drop_nulls().unique().to_list()
    if len(currencies) != 1:
        return UNPRICED
    places = rows.filter(pl.col("price_id").is_not_null()).select("price_id", "price_tier").unique().rows()
    token = {}
    for name in REPORTED_CLASSES:
        used = rows.filter(pl.col(name) > 0)
        if used.is_empty():
            known = _per_token(book.get(places[0][0]), places[0][1], name) if len(places) == 1 else None
        else:
            known = _divided(used[f"amount_{name}"], int(used[name].sum()))
        if known is not None:
            token[str(name)] = known
    counted = pl.any_horizontal(pl.col(name).is_not_null() for name in REPORTED_CLASSES)
    used, again = rows.filter(counted), rows.filter(counted & pl.col("retry"))
    requests = rows.filter(~pl.col("retry")).height
    return SeriesCost(
        token=token,
        request=_divided(used["amount"], requests) if requests else None,
        retries=_divided(again["amount"], 1) if again.height else None,
        currency=currencies[0],
    )


def _divided(amounts: pl.Series, count: int) -> Decimal | None:
    if amounts.is_empty() or amounts.null_count():
        return None
    return share(Decimal(str(amounts.sum())), count)


def _per_token(row: PriceRow | None, tier: int | None, name: TokenClass) -> Decimal | None:
    """What a token of a class that was not used would have cost in the tier that the day's reports lie in."""
    # Where a row has tiers, its price is that of the tier; above a marginal threshold, two prices hold.
    if row is None or (row.above and (tier is None or (tier and row.marginal))):
        return None
    found = next((bracket for bracket in row.brackets if bracket.tier == (tier or 0)), None)
    price = None if found is None else found.prices.get((name, Modality.TEXT))
    return None if price is None else _EXACT.divide(price, _MILLION)
