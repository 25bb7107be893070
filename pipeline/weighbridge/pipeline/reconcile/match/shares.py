"""What counters of an engine leave to an attempt, as one more source of what is known about it."""

from __future__ import annotations

import polars as pl

from weighbridge.pipeline.reconcile.frames import KEY
from weighbridge.schemas.enumerations import AttemptStatus
from weighbridge.schemas.tables import UNASSIGNED

_FIGURES = ("input_computed", "cached_local", "output_computed", "accepted", "recomputed")
READ = (*KEY, "day", "source", *_FIGURES)


def as_attempts(shares: pl.LazyFrame, attempts: pl.LazyFrame) -> pl.LazyFrame:
    """Rows of `engine_share` in the shape of rows of `attempt`: they say figures, and nothing else.

    Args:
        shares: rows of `engine_share` with `READ`.
        attempts: rows of `attempt`, whose columns and types they take. Only attempts that are there are told of.
    """
    types = attempts.collect_schema()
    told = {
        "revision": pl.lit(0),
        "status": pl.lit(str(AttemptStatus.UNKNOWN)),
        **{name: pl.lit(UNASSIGNED) for name in ("tenant", "task", "route")},
    }
    known = shares.join(attempts.select(KEY).unique(), on=list(KEY), how="semi")
    columns = [
        (pl.col(name) if name in READ else told.get(name, pl.lit(None))).cast(kind).alias(name)
        for name, kind in types.items()
    ]
    return known.select(columns)
