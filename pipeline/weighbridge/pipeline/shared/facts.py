"""One row per attempt of some days: whose cell it counts in, and what it is counted by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

import polars as pl

from weighbridge.pipeline.lake.figures import LARGEST
from weighbridge.pipeline.lake.lake import Lake
from weighbridge.pipeline.reconcile.frames import collected, frame_of
from weighbridge.pipeline.reconcile.match.reports import COLUMNS_READ, per_attempt
from weighbridge.pipeline.reconcile.recipe import by_recipe
from weighbridge.schemas.enumerations import Direction, PriceBasis, PriceStatus, SharedMeasure
from weighbridge.schemas.tables import UNASSIGNED

KEY = ("attempt_lo", "attempt_hi")
CELL = ("provider", "model", "task")
UNKNOWN = "unknown"
MILLIONTHS = 1_000_000
_TIMES = {
    SharedMeasure.QUEUE: "queue_us",
    SharedMeasure.FIRST_TOKEN: "first_token_us",
    SharedMeasure.DURATION: "total_us",
}
_OF_PRICES = ("source", "child", "report", "revision", "basis", "status", "currency", "amount")


@dataclass(frozen=True, slots=True)
class Facts:
    """The attempts of some days.

    Attributes:
        rows: one per attempt: day, `CELL`, and a column per measure; money is a column `amount <currency>` each.
        currencies: those amounts are in, in order.
    """

    rows: pl.DataFrame
    currencies: tuple[str, ...]


def facts(lake: Lake, days: Sequence[date]) -> Facts:
    """The attempts of these days as they were reconciled, with times, cached and reasoning tokens, and what they cost.

    Args:
        lake: its days have been reconciled; an attempt counts on its own day, wherever its reports were booked.
        days: UTC days, in order.
    """
    known = _reconciled(lake, days)
    keys = known.select(KEY)
    told = collected(by_recipe(per_attempt, frame_of(_of(lake, "reading", COLUMNS_READ, keys))))
    money, currencies = _amounts(lake, keys)
    reported = told.select(
        attempt_lo="r_lo",
        attempt_hi="r_hi",
        **{SharedMeasure.CACHE_READ: pl.col("cache_read"), SharedMeasure.REASONING: pl.col("reasoning")},
    )
    rows = known
    for beside in (_seen(lake, keys), reported, money):
        rows = rows.join(beside, on=list(KEY), how="left", maintain_order="left")
    return Facts(rows, currencies)


def _reconciled(lake: Lake, days: Sequence[date]) -> pl.DataFrame:
    """One row per attempt from its two rows of `reconciled`."""
    wanted = [*KEY, "day", "direction", *CELL, "observed", "reported"]
    rows = lake.scan("reconciled", first=days[0], last=days[-1], columns=wanted).filter(pl.col("day").is_in(list(days)))
    sides = {
        direction: rows.filter(pl.col("direction") == direction).rename(
            {"observed": f"{direction}_observed", "reported": f"{direction}_reported"}
        )
        for direction in Direction
    }
    both = sides[Direction.INPUT].join(
        sides[Direction.OUTPUT].select(*KEY, "output_observed", "output_reported"),
        on=list(KEY),
        how="left",
        maintain_order="left",
    )
    named = (pl.col(name).fill_null(UNASSIGNED if name == "task" else UNKNOWN) for name in CELL)
    return both.drop("direction").with_columns(named).collect(engine="streaming")


def _of(lake: Lake, table: str, columns: Sequence[str], keys: pl.DataFrame) -> pl.LazyFrame:
    """The rows of these attempts, of whatever day. A recorder's ids begin with their time: other files are skipped."""
    rows = lake.scan(table, columns=list(columns))
    if keys.height:
        rows = rows.filter(pl.col("attempt_hi").is_between(keys["attempt_hi"].min(), keys["attempt_hi"].max()))
    return rows.join(keys.lazy(), on=list(KEY), how="semi")


def _seen(lake: Lake, keys: pl.DataFrame) -> pl.DataFrame:
    """When attempts arrived and how long they took; of several sources, the longest time: the one that saw most."""
    hour = pl.col("arrived_at").min().dt.hour().cast(pl.Int64)
    rows = _of(lake, "attempt", [*KEY, "arrived_at", *_TIMES.values()], keys).group_by(KEY)
    times = {str(measure): pl.col(column).max() for measure, column in _TIMES.items()}
    return rows.agg(**{SharedMeasure.ARRIVAL: hour}, **times).collect(engine="streaming")


def _amounts(lake: Lake, keys: pl.DataFrame) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """What attempts cost in each currency, in millionths of it; null where any report of the attempt has no price."""
    rows = _of(lake, "priced_amount", [*KEY, *_OF_PRICES], keys).filter(pl.col("basis") == PriceBasis.REPORTED)
    numbered = [*KEY, "source", "child", "report"]
    last = rows.filter(pl.col("revision") == pl.col("revision").max().over(numbered)).collect()
    currencies = tuple(sorted(last["currency"].drop_nulls().unique()))
    whole = (pl.col("status") == PriceStatus.PRICED).all() & (pl.col("currency").n_unique() == 1)
    millionths = (pl.col("amount").sum() * MILLIONTHS).cast(pl.Int64, strict=False)
    summed = last.lazy().group_by(KEY).agg(currency=pl.col("currency").min(), amount=pl.when(whole).then(millionths))
    columns = {amount_of(name): pl.when(pl.col("currency") == name).then(pl.col("amount")) for name in currencies}
    return summed.select(*KEY, **columns).collect(engine="streaming"), currencies


def amount_of(currency: str) -> str:
    """The column of amounts in a currency."""
    return f"{SharedMeasure.AMOUNT} {currency}"


def plausible(values: pl.Series) -> pl.Series:
    """Counts that an attempt can have; others are evidence in the billing domain and unknown here."""
    return values.set((values < 0) | (values > LARGEST), None)
