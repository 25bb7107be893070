"""Late data of closed months, as adjustments of the open one."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from weighbridge.pipeline.close.adjust import adjust
from weighbridge.pipeline.close.closed import closes
from weighbridge.pipeline.run.home import Home
from weighbridge.pipeline.run.step import Step, Work, hashed, marks_by_day

_CLOSED = ("attempt", "usage_report", "reading", "priced_amount")


def adjust_marks(home: Home, _today: date) -> dict[str, str]:
    """Closed months, marked by the rows that are held against their packs."""
    lake = home.lake()
    closed = closes(lake)
    days = marks_by_day(lake, _CLOSED) if closed else {}
    return {
        month: hashed([row["root"], *(f"{day} {mark}" for day, mark in days.items() if f"{day:%Y-%m}" == month)])
        for month, row in closed.items()
    }


def _adjust(home: Home, months: Sequence[str], _today: date) -> Work:
    done = adjust(home.lake(), packs=home.settings.closes, months=months)
    return Work({"booked": done.booked, "findings": len(done.findings)})


STEP = Step("adjust", adjust_marks, _adjust)
