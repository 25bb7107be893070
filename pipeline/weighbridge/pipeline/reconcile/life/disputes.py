"""What is disputed, credited and still outstanding, by provider and currency."""

from __future__ import annotations

from datetime import date

import polars as pl

from weighbridge.pipeline.lake.records import Records
from weighbridge.pipeline.reconcile.life.status import life
from weighbridge.schemas.enumerations import FindingState

_MONEY = pl.Decimal(38, 18)
_DISPUTED, _CREDITED, _CLOSED = (
    str(state) for state in (FindingState.DISPUTED, FindingState.CREDITED, FindingState.CLOSED)
)


def disputes(lake: Records, today: date) -> pl.DataFrame:
    """The sums of all disputes that were not taken back.

    Returns:
        provider (null where a finding names none), currency (null: no amount is known), findings, disputed, credited,
        outstanding (what is asked for and not given yet, of those that are disputed still), given_up (what was not
        given of those that are closed), unknown (findings that are disputed without an amount); by provider and
        currency. Each sum is exact; more credited than disputed takes nothing off the others.
    """
    state = pl.col("state")
    held = life(lake, today).filter(state.is_in([_DISPUTED, _CREDITED, _CLOSED]))
    told = held.filter(pl.col("disputed_in").is_not_null() | state.is_in([_DISPUTED, _CREDITED]))
    rest = pl.col("outstanding").fill_null(0)
    return (
        told.group_by("provider", pl.col("disputed_in").alias("currency"))
        .agg(
            findings=pl.len().cast(pl.Int64),
            disputed=pl.col("disputed").sum(),
            credited=pl.col("credited").sum(),
            outstanding=rest.filter(state == _DISPUTED).sum(),
            given_up=rest.filter((state == _CLOSED) & (rest > 0)).sum(),
            unknown=pl.col("disputed").is_null().sum().cast(pl.Int64),
        )
        .with_columns(
            pl.col(name).cast(_MONEY).fill_null(0) for name in ("disputed", "credited", "outstanding", "given_up")
        )
        .sort("provider", "currency", nulls_last=True)
    )
