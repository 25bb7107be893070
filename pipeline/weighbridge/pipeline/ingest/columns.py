"""Small pieces of Polars expressions that every column form uses."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from operator import add, or_

import polars as pl

NULL = pl.lit(None, dtype=pl.Int64)
ZERO = pl.lit(0, dtype=pl.Int64)
NO = pl.lit(value=False)


def bit(condition: pl.Expr, bits: int) -> pl.Expr:
    """These bits where the condition holds, else zero."""
    return pl.when(condition).then(pl.lit(int(bits), dtype=pl.Int64)).otherwise(ZERO)


def either(conditions: Iterable[pl.Expr]) -> pl.Expr:
    """Whether one of the conditions holds; an unknown one does not."""
    return reduce(or_, (condition.fill_null(value=False) for condition in conditions), NO)


def holds(condition: pl.Expr) -> pl.Expr:
    """Whether a condition holds; an unknown one does not."""
    return condition.fill_null(value=False)


def total(parts: Iterable[pl.Expr]) -> pl.Expr:
    """The sum of the known parts."""
    return reduce(add, (part.fill_null(0) for part in parts))
