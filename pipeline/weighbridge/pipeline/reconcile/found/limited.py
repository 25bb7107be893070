"""Reports of more output than was asked for at most.

The limit binds all that is generated, hidden reasoning included, at most APIs; where it does not, the cause `over_cap`
explains it. Either way whoever set the limit to hold costs down has to know.

    reported 6 visible and 410 of reasoning, limit 400   ->   16 beyond it
"""

from __future__ import annotations

import polars as pl

from weighbridge.pipeline.lake.figures import LARGEST
from weighbridge.pipeline.reconcile.frames import KEY
from weighbridge.pipeline.reconcile.month import Month

CODE = "output_limit_exceeded"
BY = ("provider", "api", "model")


def exceeds(output: int | None, limit: int | None) -> bool:
    """Whether so many output tokens are more than was asked for; what is not known exceeds nothing."""
    return output is not None and limit is not None and output > limit


def reports(month: Month) -> pl.LazyFrame:
    """attempt, day, provider, api, model, expected (the limit of all choices), observed: reports beyond the limit."""
    asked = month.read("attempt", [*KEY, "max_tokens", "n", "revision"]).filter(pl.col("max_tokens").is_not_null())
    limits = asked.group_by(KEY).agg(
        expected=pl.col("max_tokens").cast(pl.Int64).max() * pl.col("n").fill_null(1).cast(pl.Int64).max()
    )
    place = [*KEY, "source", "child", "report"]
    told = month.read("reading", [*place, "day", "revision", *BY, "output_total"])
    last = told.filter(pl.col("revision") == pl.col("revision").max().over(place), pl.col("child") == 0)
    counted = last.filter(pl.col("output_total").is_between(0, LARGEST)).rename({"output_total": "observed"})
    return counted.join(limits, on=list(KEY)).filter(pl.col("observed") > pl.col("expected"))
