"""May a provider be accused: bets that go on from night to night, and what a month comes to."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from weighbridge.pipeline.run.forgotten import audited_days
from weighbridge.pipeline.run.home import Home
from weighbridge.pipeline.run.rooms import hold_to_account
from weighbridge.pipeline.run.step import Step, Work, hashed, marks_by_day
from weighbridge.pipeline.run.steps.units import days_in

_AUDITED = ("attempt", "reading", "reconciled")


def audit_marks(home: Home, _today: date) -> dict[str, str]:
    """Days that were reconciled, marked by their rows and by what is tolerated; and audited ones that have none now."""
    lake = home.lake()
    tolerated = lake.marks("audit_tolerance").get(None, "")
    days = {day: hashed([mark, tolerated]) for day, mark in marks_by_day(lake, _AUDITED).items()}
    return {day.isoformat(): mark for day, mark in (dict.fromkeys(lake.days("audit_cell"), "") | days).items()}


def _audit(home: Home, units: Sequence[str], _today: date) -> Work:
    done = hold_to_account(home, days_in(units))
    cells = sum(len(each) for each in done.outcomes.values())
    return Work({"months": len(done.months), "cells": cells, "findings": len(done.findings)})


# A day goes on from the one before it.
STEP = Step("audit", audit_marks, _audit, together=True, rests=audited_days)
