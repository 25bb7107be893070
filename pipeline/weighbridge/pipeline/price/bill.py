"""What readings cost at one price row, as Polars expressions: the arithmetic of `amount`, for a whole frame.

The row is known when the expressions are made, so its prices are literals and its gaps leave no trace in them. Every
product is of exact decimals; one that does not fit raises.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from operator import add, and_, or_

import polars as pl

from weighbridge.pipeline.price.amount import OBSTACLES, lifetimes_differ, possible_prices, prices_one, text_price
from weighbridge.pipeline.price.row import PriceRow
from weighbridge.schemas.enumerations import PriceStatus, TokenClass, Verdict
from weighbridge.schemas.lattice import (
    CROSSED_CELLS,
    CROSSED_CLASSES,
    INPUT_CLASSES,
    OUTPUT_CLASSES,
    REPORTED_CLASSES,
    SPLIT_MODALITIES,
    Cell,
)

MONEY = pl.Decimal(38, 18)
TOKENS = pl.Decimal(38, 0)
TOTALS = ("input_total", "output_total")
COUNTS = (*REPORTED_CLASSES, *(cell.name for cell in CROSSED_CELLS), *TOTALS)
AMOUNTS = tuple(f"amount_{name}" for name in REPORTED_CLASSES)
_FALSE = pl.lit(value=False)
_TRUE = pl.lit(value=True)
_NOTHING = pl.lit(None, dtype=MONEY)
_ZERO = pl.lit(Decimal(0), dtype=MONEY)


@dataclass(frozen=True, slots=True)
class Bill:
    """The columns of priced readings, without what is charged by use.

    Attributes:
        status: priced, or why not.
        dark: whether nothing at all of the reading is priced; it uses the column `status`.
        amounts: the cost of each class, null where unknown; they use the column `dark`.
        whole: the cost of the reading where the status is priced; it uses `status` and the amounts.
    """

    status: pl.Expr
    dark: pl.Expr
    amounts: list[pl.Expr]
    whole: pl.Expr

    def of(self, readings: pl.DataFrame) -> pl.DataFrame:
        """The readings with their columns `status`, `dark`, those of the classes, and `amount`."""
        made = readings.lazy().with_columns(self.status).with_columns(self.dark)
        return made.with_columns(self.amounts).with_columns(self.whole).collect()


def unpriced(status: PriceStatus) -> Bill:
    """The columns of readings nothing of which is priced, for this reason if there is none that goes before it."""
    nothing = [_NOTHING.alias(name) for name in AMOUNTS]
    return Bill(_status(_FALSE, [(_TRUE, status)]), _TRUE.alias("dark"), nothing, _NOTHING.alias("amount"))


def bill(row: PriceRow) -> Bill:
    """The columns of readings that this row prices, which has no tiers and no limit."""
    classes = {name: _class(row, name) for name in REPORTED_CLASSES}
    rests = [_rest(row, total, within) for total, within in zip(TOTALS, (INPUT_CLASSES, OUTPUT_CLASSES), strict=True)]
    parts = [*classes.values(), *rests]
    in_the_way = {status: _any(part.obstacles.get(status, _FALSE) for part in parts) for status in OBSTACLES}
    chain = [(in_the_way[status], status) for status in OBSTACLES if status is not PriceStatus.CONTRADICTORY]
    dark = (pl.col("status") == str(PriceStatus.CONTRADICTORY)) | uncounted()
    amounts = [
        pl.when(~pl.col("dark") & pl.col(name).is_not_null() & part.clear)
        .then(part.cost)
        .otherwise(_NOTHING)
        .alias(amount)
        for amount, (name, part) in zip(AMOUNTS, classes.items(), strict=True)
    ]
    whole = reduce(add, [*(pl.col(name).fill_null(_ZERO) for name in AMOUNTS), *(rest.cost for rest in rests)])
    priced = pl.when(pl.col("status") == str(PriceStatus.PRICED)).then(whole).alias("amount")
    return Bill(_status(in_the_way[PriceStatus.CONTRADICTORY], chain), dark.alias("dark"), amounts, priced)


def uncounted() -> pl.Expr:
    """Whether nothing at all of a reading was counted."""
    return reduce(and_, (pl.col(name).is_null() for name in (*REPORTED_CLASSES, *TOTALS)))


def _status(contradicted: pl.Expr, chain: Sequence[tuple[pl.Expr, PriceStatus]]) -> pl.Expr:
    refused = pl.col("verdict") == str(Verdict.CONTRADICTORY)
    status = pl.lit(str(PriceStatus.PRICED))
    for condition, told in reversed(
        [(uncounted(), PriceStatus.NO_COUNTS), (contradicted, PriceStatus.CONTRADICTORY), *chain]
    ):
        status = pl.when(condition).then(pl.lit(str(told))).otherwise(status)
    return pl.when(refused).then(pl.lit(str(PriceStatus.CONTRADICTORY))).otherwise(status).alias("status")


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a bill: its cost, where no obstacle holds; and per obstacle where it does."""

    cost: pl.Expr
    obstacles: dict[PriceStatus, pl.Expr]

    @property
    def clear(self) -> pl.Expr:
        """Where nothing stands in the way."""
        return ~_any(self.obstacles.values())


def _any(conditions: Iterable[pl.Expr]) -> pl.Expr:
    return reduce(or_, conditions, _FALSE)


def _tokens(name: str) -> pl.Expr:
    """A count, 0 where unknown, wide enough that no sum or difference of counts wraps."""
    return pl.col(name).fill_null(0).cast(TOKENS)


def _cost(tokens: pl.Expr, per_million: Decimal | None) -> pl.Expr:
    each = Decimal(0) if per_million is None else per_million.scaleb(-6)
    return tokens * pl.lit(each, dtype=MONEY)


def _class(row: PriceRow, token_class: TokenClass) -> _Part:
    """A class: its reported modalities, and what is left of it as text."""
    price, rest = text_price(row, token_class), _tokens(token_class)
    cost, negative, unpriced, hidden = _ZERO, _FALSE, _FALSE, _FALSE
    for modality in SPLIT_MODALITIES if token_class in CROSSED_CLASSES else ():
        name, own = Cell(token_class, modality).name, row.prices.get((token_class, modality))
        inside = _tokens(name)
        rest, cost, negative = rest - inside, cost + _cost(inside, own), negative | (inside < 0)
        if own is None:
            unpriced |= inside > 0
        elif own != price:
            hidden |= pl.col(name).is_null()
    if lifetimes_differ(row, token_class):
        hidden = _TRUE
    some = rest > 0
    split = some & hidden
    known = pl.col(token_class).is_not_null()
    return _Part(
        cost + _cost(rest, price),
        {
            PriceStatus.CONTRADICTORY: known & (negative | (rest < 0)),
            PriceStatus.SPLIT_UNKNOWN: known & split,
            PriceStatus.CLASS_UNPRICED: known & (unpriced | (some & ~split if price is None else _FALSE)),
        },
    )


def _rest(row: PriceRow, total: str, classes: Sequence[TokenClass]) -> _Part:
    """The tokens of a direction that are somewhere in its unknown classes; their price, if it is the same for all."""
    rest = reduce(lambda left, name: left - _tokens(name), classes, _tokens(total))
    unknown = {name: pl.col(name).is_null() for name in classes}
    some_unknown, counted = _any(unknown.values()), pl.col(total).is_not_null()
    open_ = some_unknown & counted
    prices = sorted({price for name in classes for price in possible_prices(row, name)})
    # For each price: whether an unknown class may have it.
    may_have = [_any(unknown[name] for name in classes if price in possible_prices(row, name)) for price in prices]
    kinds = reduce(add, (may.cast(pl.Int64) for may in may_have), pl.lit(0, dtype=pl.Int64))
    unsure = _FALSE if prices_one(row, classes) else _any(unknown[n] for n in classes if text_price(row, n) is None)
    cost = _ZERO
    for may, price in zip(may_have, prices, strict=True):
        cost = pl.when(open_ & may).then(_cost(rest, price)).otherwise(cost)
    some = open_ & (rest > 0)
    return _Part(
        cost,
        {
            PriceStatus.NO_COUNTS: some_unknown & ~counted,
            PriceStatus.CONTRADICTORY: open_ & (rest < 0),
            PriceStatus.CLASS_UNPRICED: some & (kinds == 0),
            PriceStatus.SPLIT_UNKNOWN: some & ((kinds > 1) | ((kinds == 1) & unsure)),
        },
    )
