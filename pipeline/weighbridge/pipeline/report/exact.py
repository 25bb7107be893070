"""Exact arithmetic: sums that know what they do not know, order statistics, shares."""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Context, Decimal

import polars as pl

# Amounts have 38 digits; nothing computed from them here may lose one before it is rounded on purpose.
CONTEXT = Context(prec=80, rounding=ROUND_HALF_EVEN)
SHARE_PLACES = Decimal("1e-8")
MEAN_PLACES = Decimal("1e-3")
AMOUNT_PLACES = Decimal("1e-18")


def tokens(name: str) -> pl.Expr:
    """The sum of an integer column in 128 bits: 0 where there are no rows, null where there are and none is known.

    A single report may claim up to 2**63 - 1 tokens, so a sum in 64 bits could wrap around without a word.
    """
    return _known(pl.col(name), pl.col(name).cast(pl.Int128).sum()).alias(name)


def amount(value: pl.Expr) -> pl.Expr:
    """The exact sum of a decimal expression: 0 where there are no rows, null where there are and none is known."""
    return _known(value, value.sum())


def _known(value: pl.Expr, total: pl.Expr) -> pl.Expr:
    return pl.when((value.count() > 0) | (pl.len() == 0)).then(total)


def percentile(name: str, per_cent: int) -> pl.Expr:
    """The nearest-rank percentile: the smallest known value that at least so many per cent do not exceed."""
    value = pl.col(name).drop_nulls()
    rank = (value.len().cast(pl.Int64) * per_cent + 99) // 100 - 1
    return value.sort().get(rank, null_on_oob=True)


def ratio(part: object, whole: object, places: Decimal = SHARE_PLACES) -> Decimal | None:
    """`part` / `whole`, rounded half-even; null where either is unknown or there is nothing to divide by."""
    if not isinstance(part, int | Decimal) or not isinstance(whole, int | Decimal) or not whole:
        return None
    return CONTEXT.quantize(CONTEXT.divide(Decimal(part), Decimal(whole)), places)


def added(values: list[object]) -> int | Decimal | None:
    """The exact sum of the known numbers; null where there are values and none is known."""
    known = [value for value in values if isinstance(value, int | Decimal)]
    if values and not known:
        return None
    if any(isinstance(value, Decimal) for value in known):
        total = Decimal(0)
        for value in known:
            total = CONTEXT.add(total, Decimal(value))
        return total
    return sum(int(value) for value in known)
