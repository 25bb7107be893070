"""Waivers that have ended: what a gate let pass because of one is looked at again from the day after its last."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date

import polars as pl

from weighbridge.pipeline.lake.lake import Lake
from weighbridge.pipeline.lake.life import states
from weighbridge.schemas.enumerations import FindingOrigin, FindingState

_EVER = "all"


def ended_waivers(lake: Lake, origin: FindingOrigin, today: date) -> Callable[[date], list[str]]:
    """A function that gives, for a day, the findings about it that are open again because a waiver has ended.

    Args:
        lake: the lake.
        origin: only findings of this room.
        today: the UTC day it is.

    Returns:
        Day -> one text per finding, with the last day of its waiver. A finding that names no day is about every day of
        its period; once somebody decides about it again, it is in none of them.
    """
    over = pl.col("state").eq(str(FindingState.OPEN)) & pl.col("expires_on").lt(today).fill_null(value=False)
    ended = states(lake, today).filter(over).select("finding_id", "expires_on")
    if ended.is_empty():
        return lambda _day: []
    found = (
        lake.scan("finding", columns=["finding_id", "origin", "period", "first_day", "last_day"])
        .filter(pl.col("origin") == str(origin))
        .collect()
        .join(ended, on="finding_id")
        .sort("finding_id")
        .rows(named=True)
    )

    def of(day: date) -> list[str]:
        return [f"{row['finding_id']} {row['expires_on']}" for row in found if _is_about(row, day)]

    return of


def _is_about(finding: dict[str, object], day: date) -> bool:
    first, last = finding["first_day"], finding["last_day"]
    if isinstance(first, date) and isinstance(last, date):
        return first <= day <= last
    return finding["period"] in {_EVER, f"{day:%Y-%m}"}
