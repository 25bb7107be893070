"""What the matching, causes and explanation are written in: lazy frames in the subset that every engine understands.

The functions that take and give a `Frame` run unchanged on Polars, DuckDB and Spark, so they keep to Narwhals' lazy
subset: no filter inside an aggregation, no rank over a window, lengths and sums cast to Int64, several cases as
nested `otherwise`. Everything else (money, findings, files) happens on small Polars frames afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import or_
from typing import TypeAlias

import narwhals as nw
import polars as pl

from weighbridge.pipeline.lake.figures import LARGEST
from weighbridge.pipeline.reconcile.engines import engine as engines
from weighbridge.pipeline.reconcile.engines.engine import POLARS, current
from weighbridge.pipeline.reconcile.engines.on_polars import engine as polars
from weighbridge.pipeline.reconcile.engines.sums import exact_sum
from weighbridge.pipeline.reconcile.recipe import stacked

Frame: TypeAlias = engines.Frame
Expr: TypeAlias = nw.Expr

KEY = ("attempt_lo", "attempt_hi")


def frame_of(native: pl.DataFrame | pl.LazyFrame) -> Frame:
    """Rows as a lazy frame of the engine that computes here."""
    return current().frame(native)


def collected(frame: Frame) -> pl.DataFrame:
    """The rows of a lazy frame as Polars, whatever engine computed them.

    Raises:
        SumError: a sum is beyond 64 bits.
    """
    engine = current()
    own = engine.name != POLARS and not isinstance(frame.to_native(), pl.LazyFrame)
    return engine.collected(frame) if own else polars().collected(frame)


def tokens(value: int | None = None) -> Expr:
    """A literal count; null by default."""
    return nw.lit(value, dtype=nw.Int64)


def words(value: str | None = None) -> Expr:
    """A literal text; null by default."""
    return nw.lit(value, dtype=nw.String)


def total(expr: Expr) -> Expr:
    """The sum of a count over a group; null where no row has it, for absent is not zero."""
    return nw.when(expr.count() > 0).then(exact_sum(expr))


def rows_where(condition: Expr) -> Expr:
    """How many rows of a group meet a condition."""
    return nw.when(condition).then(tokens(1)).otherwise(tokens(0)).sum().cast(nw.Int64)


def beyond(*names: str) -> Expr:
    """Whether any of these counts is larger, either way, than any attempt can be."""
    return reduce(or_, (_is_beyond(nw.col(name)) for name in names))


def _is_beyond(count: Expr) -> Expr:
    return ((count > LARGEST) | (count < -LARGEST)).fill_null(value=False)


def within(count: Expr, most: int = LARGEST) -> Expr:
    """The count where it is from 0 to `most`, else null: what is multiplied must not run over 64 bits."""
    return nw.when((count >= 0) & (count <= most)).then(count)


def first_of(cases: Sequence[tuple[Expr, Expr]], otherwise: Expr) -> Expr:
    """The value of the first condition that holds, as nested cases."""
    out = otherwise
    for condition, value in reversed(cases):
        out = nw.when(condition).then(value).otherwise(out)
    return out


def added(*parts: Expr) -> Expr:
    """The sum of the parts that are known; null where none is."""
    known = nw.coalesce(*parts).is_null()
    whole = parts[0].fill_null(0)
    for part in parts[1:]:
        whole = whole + part.fill_null(0)
    return nw.when(~known).then(whole)


def latest(frame: Frame, key: Sequence[str]) -> Frame:
    """Only the last revision of each key. Few rows were ever revised, so they alone are grouped."""
    revised = frame.filter(nw.col("revision") > 0)
    last = revised.group_by(*key).agg(last_revision=nw.col("revision").max())
    seen = frame.join(last, on=list(key), how="left")
    kept = nw.col("last_revision").is_null() | (nw.col("revision") == nw.col("last_revision"))
    return seen.filter(kept).drop("last_revision")


def single_and_several(frame: Frame, single: Callable[[Frame], Frame], several: Callable[[Frame], Frame]) -> Frame:
    """One row per attempt: attempts that have one row take the cheap road, only the others are grouped."""
    counted = frame.group_by(*KEY).agg(rows_of_key=nw.len().cast(nw.Int64))
    crowded = counted.filter(nw.col("rows_of_key") > 1).select(*KEY)
    alone = frame.join(crowded, on=list(KEY), how="anti")
    crowd = frame.join(crowded, on=list(KEY), how="semi")
    return stacked([single(alone), several(crowd)])
