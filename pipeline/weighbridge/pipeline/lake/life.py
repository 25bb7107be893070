"""The state of findings: the last thing that was decided about each. Deciding is the business of `reconcile`."""

from __future__ import annotations

from datetime import date

import polars as pl

from weighbridge.pipeline.lake.records import Records
from weighbridge.schemas.enumerations import FindingState

_STATES = {
    "finding_id": pl.String(),
    "state": pl.String(),
    "changed_at": pl.Datetime("us", "UTC"),
    "changed_by": pl.String(),
    "reason": pl.String(),
    "expires_on": pl.Date(),
    "changes": pl.Int32(),
}


def states(lake: Records, today: date) -> pl.DataFrame:
    """The state on the UTC day `today` of every finding that was ever changed.

    Returns:
        finding_id, state, changed_at, changed_by, reason, expires_on, changes (how many). A waiver that has ended is
        open; `expires_on` still says when it ended.
    """
    last = lake.scan("finding_status").sort("finding_id", "change").group_by("finding_id", maintain_order=True).last()
    ended = pl.col("expires_on") < today
    over = (pl.col("state") == str(FindingState.WAIVED)) & ended.fill_null(value=False)
    shown = last.with_columns(
        state=pl.when(over).then(pl.lit(str(FindingState.OPEN))).otherwise(pl.col("state")),
        changes=(pl.col("change") + 1).cast(pl.Int32),
    )
    return shown.select(list(_STATES)).collect()
