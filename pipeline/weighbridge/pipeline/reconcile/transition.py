"""What became of amounts that were provisional: by what they were, what they are now, and how many tokens came."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

import polars as pl

from weighbridge.pipeline.lake.records import Records
from weighbridge.pipeline.reconcile.frames import KEY
from weighbridge.schemas.enumerations import Status

_ROW = (*KEY, "direction")
GONE = "GONE"  # no row is left: the report met its attempt under that one's day and key


@dataclass(frozen=True, slots=True)
class Transition:
    """Amounts of one month, provider and direction that were provisional.

    Attributes:
        period: the UTC month.
        provider: who answered; null where that is not known.
        direction: input or output.
        became: the status they have now, or `GONE`.
        rows: how many amounts.
        observed, reported_before, reported: tokens; null where no row has any.
    """

    period: str
    provider: str | None
    direction: str
    became: str
    rows: int
    observed: int | None
    reported_before: int | None
    reported: int | None


def provisional(records: Records, first: date, last: date) -> pl.DataFrame:
    """The amounts of these days that are provisional as they stand in the lake."""
    columns = [*_ROW, "day", "provider", "reported", "status"]
    held = records.scan("reconciled", first=first, last=last, columns=columns)
    return held.filter(pl.col("status") == str(Status.PROVISIONAL)).collect(engine="streaming")


def now(reconciled: pl.DataFrame, before: pl.DataFrame) -> pl.DataFrame:
    """Of new rows those that were provisional."""
    return reconciled.join(before.select(_ROW), on=list(_ROW), how="semi").select(
        *_ROW, "status", "observed", new="reported"
    )


def transitions(before: pl.DataFrame, after: Sequence[pl.DataFrame], period: str) -> tuple[Transition, ...]:
    """What became of them, in order; what is provisional still is told too.

    Args:
        before: `provisional`.
        after: `now`, per batch.
        period: the month.
    """
    if before.is_empty():
        return ()
    found = before.drop("status").join(pl.concat(after), on=list(_ROW), how="left") if after else None
    rows = before.drop("status").with_columns(status=None, observed=None, new=None) if found is None else found
    known = rows.with_columns(pl.col("status").cast(pl.String).fill_null(GONE))
    grouped = known.group_by("provider", "direction", "status").agg(
        pl.len().cast(pl.Int64).alias("rows"),
        *(
            pl.when(pl.col(name).count() > 0).then(pl.col(name).cast(pl.Int64).sum()).alias(name)
            for name in ("observed", "reported", "new")
        ),
    )
    ordered = grouped.sort("provider", "direction", "status", nulls_last=True)
    return tuple(Transition(period, *row) for row in ordered.iter_rows())
