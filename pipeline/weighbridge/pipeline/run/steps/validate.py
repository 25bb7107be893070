"""Tables held to their contract; a gate that is shut ends the night."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta

from weighbridge.pipeline.run.home import Home
from weighbridge.pipeline.run.rooms import check
from weighbridge.pipeline.run.step import Step, Work, hashed, marks_by_day
from weighbridge.pipeline.run.steps.units import days_in
from weighbridge.pipeline.run.waivers import ended_waivers
from weighbridge.pipeline.validate.validate import BEFORE_RECONCILE
from weighbridge.schemas.enumerations import FindingOrigin
from weighbridge.schemas.tables import TABLES

_CONTRACT = tuple(name for name in BEFORE_RECONCILE if TABLES[name].daily and name != "quarantine")


def validate_marks(home: Home, today: date) -> dict[str, str]:
    """Days with rows, and the day before today: whether a source has fallen silent is asked of days without rows.

    A day is marked by its rows, and by what is open again on it since a waiver has ended.
    """
    lake = home.lake()
    days = {today - timedelta(days=1): ""} | marks_by_day(lake, _CONTRACT)
    reopened = ended_waivers(lake, FindingOrigin.VALIDATE, today)
    return {day.isoformat(): hashed([mark, *again]) if (again := reopened(day)) else mark for day, mark in days.items()}


def _validate(home: Home, units: Sequence[str], today: date) -> Work:
    done = check(home, days_in(units), today)
    counts = {
        "days": len(done.days),
        "rows": sum(done.rows.values()),
        "rules": done.rules,
        "broken": len(done.broken),
        "quarantined": done.quarantined,
    }
    return Work(counts, {} if done.page is None else {"page": done.page}, refused=not done.gate)


# One page shows all the days that were looked at.
STEP = Step("validate", validate_marks, _validate, together=True)
