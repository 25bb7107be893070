"""Costs that records report beside their tokens: whether so many tokens can have cost that.

    170,308,898 tokens for 919,291.81; at 75 a million, the dearest price of the book, they cost 12,773.17 at the most

Such a cost is most likely in another unit of money than it is taken for, or holds fees that are no tokens. It enters
no amount of the product; whoever relies on the log it stands in should know. `price.plausible` judges a single one.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from typing import TypeAlias

import polars as pl

from weighbridge.pipeline.ingest.gateway_paths import (
    HELICONE_BILLIONTHS,
    HELICONE_DOLLARS,
    LANGFUSE_COSTS,
    LITELLM_SPEND,
)
from weighbridge.pipeline.lake.figures import LARGEST
from weighbridge.pipeline.price.plausible import highest_token_price
from weighbridge.pipeline.reconcile.frames import KEY
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
# What has not changed is not stored again, so each part of a report has a last revision of its own.
_PART = (*_REPORT, "child", "part")
_LEAVES = ("leaf_shape", "leaf_integers", "leaf_texts")
_MONEY, _WHOLE = pl.Decimal(38, 18), pl.Decimal(38, 0)
# Dollars that no tokens cost, and few enough to be added up many times over.
_ABSURD = Decimal(10**15)
# Positions of the leaves that are a cost, and how many of their units make a dollar.
_Charge: TypeAlias = tuple[tuple[int, ...], int]
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
    reports = month.dated("usage_report", [*_PART, "revision", "day", *_LEAVES]).filter(own)
    told = _told(reports)
    if not told:
        return _NONE
    # Few parts were ever revised. All of them are asked, for a later one that names no cost takes an earlier one away.
    revised = reports.filter(pl.col("revision") > 0).group_by(_PART).agg(last=pl.col("revision").max())
    costs = (
        reports.filter(pl.col("leaf_shape").is_in([shape for shapes in told.values() for shape in shapes]))
        .select(*_PART, "revision", cost=pl.coalesce(_cost(charge, shapes) for charge, shapes in told.items()))
        .join(revised, on=list(_PART), how="left")
        .filter(pl.col("revision") == pl.col("last").fill_null(0))
        .drop_nulls("cost")
        .group_by(*_REPORT, "child")
        .agg(pl.col("cost").sort_by("part").last())
        .group_by(_REPORT)
        .agg(pl.col("cost").sum())
        .collect(engine="streaming")
    )
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
    both = costs.join(tokens, on=list(_REPORT)).filter(pl.col("total").is_between(0, LARGEST))
    most = pl.col("total").cast(_WHOLE) * pl.lit(highest, dtype=_MONEY) / pl.lit(10**6, dtype=_WHOLE)
    return both.filter((pl.col("cost") < 0) | (pl.col("cost") > most.cast(_MONEY))).select(_NONE.columns)


def _told(reports: pl.LazyFrame) -> dict[_Charge, list[str]]:
    """Where reports have their costs, and the shapes of those that have them there."""
    told: dict[_Charge, list[str]] = {}
    for shape in reports.select(pl.col("leaf_shape").unique()).collect(engine="streaming")["leaf_shape"].sort():
        if (charge := _charge(shape)) is not None:
            told.setdefault(charge, []).append(shape)
    return told


def _charge(shape: str) -> _Charge | None:
    """Positions of the leaves that are the cost of reports of this shape, and how many of them make a dollar."""
    paths = {path: at for at, path in enumerate(shape.split(" "))}
    for names, units in CHARGES:
        positions = tuple(paths[name] for name in names if name in paths)
        if positions:
            return positions, units
    return None


def _cost(charge: _Charge, shapes: Sequence[str]) -> pl.Expr:
    """The cost of reports of these shapes, in dollars; null where they name none, and for all others."""
    positions, units = charge
    mine = pl.col("leaf_shape").is_in(shapes)
    parts = [_money(mine, at) / pl.lit(units, dtype=_WHOLE) for at in positions]
    some = pl.any_horizontal(part.is_not_null() for part in parts)
    return pl.when(some).then(
        pl.sum_horizontal(part.cast(_MONEY).clip(-_ABSURD, _ABSURD).fill_null(0) for part in parts)
    )


def _money(mine: pl.Expr, position: int) -> pl.Expr:
    """A leaf as an amount; what has more digits than an amount can have is left out."""
    leaves = (pl.col(name).list.get(position, null_on_oob=True) for name in ("leaf_texts", "leaf_integers"))
    return pl.coalesce(pl.when(mine).then(leaf).cast(_MONEY, strict=False) for leaf in leaves)
