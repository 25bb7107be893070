"""How two tables that should be the same are apart, row by row under their key."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from weighbridge.pipeline.close.month_rows import ordered
from weighbridge.schemas.table import Table


@dataclass(frozen=True, slots=True)
class Apart:
    """What is not the same.

    Attributes:
        changed: rows of the second that are others than those of the first under the same key.
        missing: rows of the first that the second lacks.
        extra: rows of the second that the first lacks.
    """

    changed: pl.DataFrame
    missing: pl.DataFrame
    extra: pl.DataFrame

    def __iter__(self) -> Iterator[pl.DataFrame]:
        """The three, in that order."""
        return iter((self.changed, self.missing, self.extra))


def apart(table: Table, first: pl.DataFrame, second: pl.DataFrame) -> Apart:
    """Compare two frames in the columns of a table."""
    left, right = ordered(table, first), ordered(table, second)
    none = right.clear()
    if left.equals(right):
        return Apart(none, none, none)
    key = list(table.key)
    one, other = left.select(key), right.select(key)
    missing = left.join(other, on=key, how="anti", nulls_equal=True)
    extra = right.join(one, on=key, how="anti", nulls_equal=True)
    both = ordered(table, left.join(other, on=key, how="semi", nulls_equal=True))
    shared = ordered(table, right.join(one, on=key, how="semi", nulls_equal=True))
    if both.height != shared.height:
        return Apart(shared, missing, extra)
    same = pl.repeat(value=True, n=shared.height, eager=True)
    for name in table.names:
        same &= both[name].eq_missing(shared[name])
    return Apart(shared.filter(~same), missing, extra)
