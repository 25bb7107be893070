"""Exact sums that know what they do not know: null where there are rows and none is known, 0 where there are none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from decimal import Context, Decimal, Inexact

import polars as pl

# Wide enough for every sum and product of amounts here; should one ever not fit, it raises instead of rounding.
EXACT = Context(prec=120, traps=[Inexact])
MONEY = pl.Decimal(38, 18)
NOTHING = Decimal(0)
# What a column of counts holds, in either direction.
LARGEST_INT64 = 2**63 - 1


def count(condition: pl.Expr) -> pl.Expr:
    """How many rows meet a condition."""
    return condition.sum().cast(pl.Int64)


def tokens(value: pl.Expr) -> pl.Expr:
    """The sum of counts, in 128 bits: a single report may claim up to 2**63 - 1 tokens."""
    return _known(value, value.cast(pl.Int128).sum())


def amount(value: pl.Expr) -> pl.Expr:
    """The sum of amounts."""
    return _known(value, value.sum())


def _known(value: pl.Expr, total: pl.Expr) -> pl.Expr:
    return pl.when((value.count() > 0) | (pl.len() == 0)).then(total)


def added(parts: Sequence[pl.DataFrame], by: Sequence[str]) -> pl.DataFrame:
    """Group sums of several batches, or finer ones, as sums of the groups `by`; other labels are dropped first."""
    every = pl.concat(parts)
    sums = [
        (amount if every.schema[name] == MONEY else tokens)(pl.col(name)).alias(name)
        for name in every.columns
        if name not in by and every.schema[name].is_numeric()
    ]
    return every.group_by(by).agg(*sums) if by else every.select(*sums)


def total(amounts: Iterable[Decimal]) -> Decimal:
    """The exact sum of amounts."""
    out = NOTHING
    for each in amounts:
        out = EXACT.add(out, each)
    return out


def in_64_bits(tokens: int | None) -> int | None:
    """A count that a column holds, null where it is larger."""
    return tokens if tokens is None or abs(tokens) <= LARGEST_INT64 else None


def pieces(tokens: int | None) -> Iterator[int | None]:
    """A count as counts that a column holds and that add up to it: one, but for claims beyond any account of tokens."""
    if tokens is None:
        yield None
        return
    sign, left = (-1 if tokens < 0 else 1), abs(tokens)
    while left > LARGEST_INT64:
        yield sign * LARGEST_INT64
        left -= LARGEST_INT64
    yield sign * left
