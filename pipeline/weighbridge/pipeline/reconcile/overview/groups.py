"""Groups of outcomes on any engine: how many, exact sums, and the exact 95th percentile of the output.

The percentile is the linear one: between the two middle values where it falls between two. It is given in hundredths of
a token, so that it is a whole number on every engine.
"""

from __future__ import annotations

import narwhals as nw
import polars as pl

from weighbridge.pipeline.reconcile.engines.sums import exact_sum
from weighbridge.pipeline.reconcile.frames import Frame
from weighbridge.pipeline.reconcile.overview.pairs import FIGURES, NAMES

GROUP = (*NAMES, "kind")
PERCENT = 95
P95 = "output_p95_hundredths"
# Of a group: its names, its kind, how many, the sums of `FIGURES` (null where no row knows one), and the percentile.
SCHEMA: dict[str, pl.DataType] = {
    **dict.fromkeys(GROUP, pl.String()),
    "attempts": pl.Int64(),
    **dict.fromkeys(FIGURES, pl.Int64()),
    P95: pl.Int64(),
}


def grouped(rows: Frame) -> Frame:
    """The outcomes (`pairs.plain`, `pairs.matched`) by group; `SCHEMA`.

    Collecting it raises `SumError` where a sum is beyond 64 bits.
    """
    sums = {name: nw.when(nw.col(name).count() > 0).then(exact_sum(nw.col(name))) for name in FIGURES}
    quantile = nw.col("output").quantile(PERCENT / 100, interpolation="linear")
    groups = rows.group_by(*GROUP).agg(attempts=nw.len().cast(nw.Int64), p95=quantile, **sums)
    hundredths = (nw.col("p95") * 100).round(0).cast(nw.Int64)
    return groups.with_columns(**{P95: hundredths}).select(*SCHEMA)


def in_order(groups: pl.DataFrame) -> pl.DataFrame:
    """The same groups in the order of their names, in the types of `SCHEMA`."""
    return groups.select(pl.col(name).cast(kind) for name, kind in SCHEMA.items()).sort(GROUP, nulls_last=True)
