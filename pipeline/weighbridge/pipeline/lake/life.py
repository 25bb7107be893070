"""The state of findings: the last thing that was decided about each. Deciding is the business of `reconcile`.

A credit of less than what is disputed leaves the rest disputed: the state follows from the sums of all its changes.
"""

from __future__ import annotations

from datetime import date

import polars as pl

from weighbridge.pipeline.lake.records import Records
from weighbridge.schemas.enumerations import FindingState

_MONEY = pl.Decimal(38, 18)
_OPEN, _WAIVED = str(FindingState.OPEN), str(FindingState.WAIVED)
_DISPUTED, _CREDITED = str(FindingState.DISPUTED), str(FindingState.CREDITED)
STATES = {
    "finding_id": pl.String(),
    "state": pl.String(),
    "changed_at": pl.Datetime("us", "UTC"),
    "changed_by": pl.String(),
    "reason": pl.String(),
    "expires_on": pl.Date(),
    "reference": pl.String(),
    "disputed": _MONEY,
    "credited": _MONEY,
    "outstanding": _MONEY,
    "disputed_in": pl.String(),
    "closed_amount": _MONEY,
    "closed_in": pl.String(),
    "changes": pl.Int32(),
}


def states(lake: Records, today: date) -> pl.DataFrame:
    """The state on the UTC day `today` of every finding that was ever changed.

    Returns:
        finding_id, state, changed_at, changed_by, reason, expires_on, reference (the last that was given), changes (how
        many). A waiver that has ended is open; `expires_on` still says when it ended. Of disputes: `disputed` (the last
        amount), `credited` (all credits), `outstanding` (their difference; below zero where more was credited; null
        where no amount is known) in the currency `disputed_in`. Of a closed finding the amount it was closed with.
    """
    rows = lake.scan("finding_status").sort("finding_id", "change").collect()
    kinds = pl.col("state")
    money = pl.col("amount").cast(_MONEY)
    given = money.filter(kinds == _CREDITED)
    summed = rows.group_by("finding_id", maintain_order=True).agg(
        pl.all().exclude("finding_id", "amount", "currency", "reference").last(),
        pl.col("reference").drop_nulls().last(),
        disputed=money.filter(kinds == _DISPUTED).last(),
        credited=pl.when(given.count() > 0).then(given.sum()),
        disputed_in=pl.col("currency").filter(kinds.is_in([_DISPUTED, _CREDITED])).drop_nulls().last(),
        closed_amount=money.last(),
        closed_in=pl.col("currency").last(),
    )
    closed = kinds == str(FindingState.CLOSED)
    over = (kinds == _WAIVED) & (pl.col("expires_on") < today).fill_null(value=False)
    # No credit is a credit of nothing; a dispute without an amount has no rest that could be told.
    held = summed.with_columns(outstanding=pl.col("disputed") - pl.col("credited").fill_null(0))
    partly = (kinds == _CREDITED) & (pl.col("outstanding") > 0).fill_null(value=False)
    return held.with_columns(
        state=pl.when(over).then(pl.lit(_OPEN)).when(partly).then(pl.lit(_DISPUTED)).otherwise(kinds),
        closed_amount=pl.when(closed).then("closed_amount"),
        closed_in=pl.when(closed).then("closed_in"),
        changes=(pl.col("change") + 1).cast(pl.Int32),
    ).select(pl.col(name).cast(kind) for name, kind in STATES.items())
