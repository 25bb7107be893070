"""Findings of earlier months that a month takes over: what matters, and nobody is done with."""

from __future__ import annotations

from datetime import date

import polars as pl

from weighbridge.pipeline.lake.records import Records
from weighbridge.pipeline.reconcile.life.material import EVERY_PERIOD, Materiality, judged
from weighbridge.pipeline.reconcile.life.status import life
from weighbridge.schemas.enumerations import FindingState, Severity

# A waiver says that it may rest, up to its last day; it is carried again from then on.
LIVE = tuple(str(state) for state in (FindingState.OPEN, FindingState.ACKNOWLEDGED, FindingState.DISPUTED))
WEIGHTY = (str(Severity.WARNING), str(Severity.ERROR))


def carried(lake: Records, month: str, policy: Materiality, today: date) -> pl.DataFrame:
    """The findings that a month takes over from the months before it, each under the month it was first found in.

    Args:
        lake: the lake.
        month: the UTC month, `YYYY-MM`.
        policy: which findings matter.
        today: the UTC day whose states count.

    Returns:
        Rows as of `life`, with `material`, `material_rule`, and `first_month`: the oldest first, then by code and id.
    """
    earlier = (pl.col("period") != EVERY_PERIOD) & (pl.col("period") < month)
    held = life(lake, today).filter(earlier, pl.col("severity").is_in(WEIGHTY), pl.col("state").is_in(LIVE))
    told = judged(lake, held, policy).filter("material")
    return told.with_columns(first_month="period").sort("period", "code", "finding_id")
