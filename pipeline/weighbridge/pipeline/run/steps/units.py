"""Units of work: days and months by their names, and which rows touch a month."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from weighbridge.pipeline.reconcile.period import ends
from weighbridge.pipeline.run.forgotten import AROUND


def days_in(units: Sequence[str]) -> list[date]:
    """The days that units of steps by day name."""
    return [date.fromisoformat(unit) for unit in units]


def touches(month: str, day: date) -> bool:
    """Whether rows of the day may belong to the month, in some zone."""
    first, last = ends(month)
    return first - AROUND <= day <= last + AROUND
