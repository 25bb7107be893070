"""Every attempt and report of the lake, or of a month, by tenant, model and outcome."""

from __future__ import annotations

import polars as pl

from weighbridge.pipeline.lake.committed import Committed
from weighbridge.pipeline.lake.scratch import scratch
from weighbridge.pipeline.reconcile.engines import using
from weighbridge.pipeline.reconcile.engines.engine import POLARS, SPARK
from weighbridge.pipeline.reconcile.overview.groups import SCHEMA, grouped, in_order
from weighbridge.pipeline.reconcile.overview.limits import Limits
from weighbridge.pipeline.reconcile.overview.merged import merged
from weighbridge.pipeline.reconcile.overview.whole import Whole


def overview(lake: Committed, *, month: str | None = None, engine: str = POLARS) -> pl.DataFrame:
    """Groups of tenant, model and kind (`pairs.KINDS`) with how many attempts, exact sums and the exact percentile.

    Args:
        lake: the lake; it is only read.
        month: `YYYY-MM`, the attempts and lone reports that are at home in that UTC month; the whole lake where null.
        engine: polars, duckdb or spark; the digits are the same.

    Returns:
        `groups.SCHEMA`, in the order of names. `input`, `output` are what was observed, the differences are reported
        minus observed; null where no row of the group knows one.

    Raises:
        SumError: a sum is beyond 64 bits.
        LakeError: a file cannot be read.
    """
    attempts, readings = lake.parts("attempt"), lake.parts("reading")
    if not attempts and not readings:
        return pl.DataFrame(schema=SCHEMA)
    with using(engine) as made:
        if made.name == SPARK:
            whole = Whole(made, {"attempt": attempts, "reading": readings}, month)
            return in_order(made.collected(grouped(whole.rows())))
        with scratch("overview") as folder:
            return in_order(merged(lake, attempts, readings, month=month, limits=Limits(folder)))
