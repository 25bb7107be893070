"""Costs that records report beside their tokens: whether so many tokens can have cost that.

    170,308,898 tokens for 919,291.81; at 75 a million, the dearest price of the book, they cost 12,773.17 at the most

Such a cost is most likely in another unit of money than it is taken for, or holds fees that are no tokens. It enters
no amount of the product; whoever relies on the log it stands in should know. `price.plausible` judges a single one.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from decimal import Decimal

import polars as pl

from weighbridge.pipeline.ingest.gateway_paths import (
    HELICONE_BILLIONTHS,
    HELICONE_DOLLARS,
    LANGFUSE_COSTS,
    LITELLM_SPEND,
)
from weighbridge.pipeline.price.plausible import highest_token_price
from weighbridge.pipeline.reconcile.frames import KEY, LARGEST
from weighbridge.pipeline.reconcile.month import Month

# Leaves that are the cost of a whole report, as parts to be added, and how many of them make a dollar.
CHARGES: Sequence[tuple[tuple[str, ...], int]] = (
    ((LITELLM_SPEND,), 1),
    ((HELICONE_DOLLARS,), 1),
    ((HELICONE_BILLIONTHS,), 10**9),
    (("observation.calculatedTotalCost",), 1),
    (tuple(LANGFUSE_COSTS.values()), 1),
    (("usage_metadata.total_cost",), 1),
    (("run.total_cost",), 1),
    (("usage.cost",), 1),
    (("usage.cost_in_usd_ticks",), 10**10),
)
CURRENCY = "USD"
BY = ("source", "provider", "model")
_REPORT = (*KEY, "source", "report")
_LEAVES = ("leaf_shape", "leaf_integers", "leaf_texts")
_MONEY, _WHOLE = pl.Decimal(38, 18), pl.Decimal(38, 0)
_NONE = pl.DataFrame(
    schema=dict.fromkeys(KEY, pl.Int64()) | {"day": pl.Date()} | dict.fromkeys(BY, pl.String()) | {"cost": _MONEY}
)


def implausible_costs(month: Month, highest: Decimal | None) -> pl.DataFrame:
    """attempt, day, source, provider, model and cost (USD) of reports whose cost their tokens cannot have.

    Args:
        month: whose days are looked at, one at a time.
        highest: the dearest token of the book, USD a million; null where the book has no price, and nothing is said.
    """
    found = [_of_day(month, day, highest) for day in month.days] if highest is not None else []
    return pl.concat([_NONE, *found])


def dearest(month: Month) -> Decimal | None:
    """The dearest token of the book that the lake has, USD a million; null where it has none."""
    rows = month.lake.scan("price", columns=["per_million", "currency"]).collect()
    return highest_token_price(rows.filter(pl.col("currency") == CURRENCY)["per_million"])


def _of_day(month: Month, day: date, highest: Decimal) -> pl.DataFrame:
    own = pl.col("day") == day
    reports = month.dated("usage_report", [*_REPORT, "child", "part", "revision", "day", *_LEAVES]).filter(own)
    shapes = reports.select(pl.col("leaf_shape").unique()).collect()["leaf_shape"]
    told = {shape: at for shape in shapes if (at := _charge(shape)) is not None}
    if not told:
        return _NONE
    costs = []
    held = reports.filter(pl.col("leaf_shape").is_in(list(told))).collect()
    for (shape,), rows in held.partition_by("leaf_shape", as_dict=True).items():
        positions, units = told[str(shape)]
        parts = [_money(at) for at in positions]
        some = pl.any_horizontal(part.is_not_null() for part in parts)
        cost = pl.sum_horizontal(part.fill_null(0) for part in parts) / pl.lit(units, dtype=_WHOLE)
        costs.append(rows.select(*_REPORT, "part", "revision", cost=pl.when(some).then(cost.cast(_MONEY))))
    last = pl.concat(costs).drop_nulls("cost").sort("revision", "part").unique(_REPORT, keep="last")
    readings = month.dated("reading", [*_REPORT, "child", "revision", "day", "provider", "model", "total"]).filter(own)
    newest = pl.col("revision") == pl.col("revision").max().over(*_REPORT, "child")
    tokens = (
        readings.filter(newest)
        .sort("child")
        .group_by(*_REPORT, maintain_order=True)
        .agg(
            pl.col("day", "provider", "model").first(),
            total=pl.when(pl.col("total").null_count() == 0).then(pl.col("total").sum()),
        )
        .collect()
    )
    both = last.join(tokens, on=list(_REPORT)).filter(pl.col("total").is_between(0, LARGEST))
    most = pl.col("total").cast(_WHOLE) * pl.lit(highest, dtype=_MONEY) / pl.lit(10**6, dtype=_WHOLE)
    return both.filter((pl.col("cost") < 0) | (pl.col("cost") > most.cast(_MONEY))).select(_NONE.columns)


def _charge(shape: str) -> tuple[tuple[int, ...], int] | None:
    """Positions of the leaves that are the cost of reports of this shape, and how many of them make a dollar."""
    paths = {path: at for at, path in enumerate(shape.split(" "))}
    for names, units in CHARGES:
        positions = tuple(paths[name] for name in names if name in paths)
        if positions:
            return positions, units
    return None


def _money(position: int) -> pl.Expr:
    """A leaf as an amount; what has more digits than an amount can have is left out."""
    text = pl.col("leaf_texts").list.get(position, null_on_oob=True).cast(_MONEY, strict=False)
    return pl.coalesce(text, pl.col("leaf_integers").list.get(position, null_on_oob=True).cast(_MONEY, strict=False))
