"""Limits of cells, what left them, and alerts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from weighbridge.pipeline.baseline.alerts import alert
from weighbridge.pipeline.baseline.policy import AlertPolicy
from weighbridge.pipeline.baseline.webhook import worth_posting
from weighbridge.pipeline.run.forgotten import judged_days
from weighbridge.pipeline.run.home import Home
from weighbridge.pipeline.run.rooms import judge
from weighbridge.pipeline.run.step import Step, Work, hashed, marks_by_day, stamps_of
from weighbridge.pipeline.run.steps.units import days_in
from weighbridge.schemas.finding import Finding

# Under this name stands which findings of baselines were sent on.
TOLD = "findings told"
_JUDGED = ("attempt", "reading", "priced_amount")


def baseline_marks(home: Home, _today: date) -> dict[str, str]:
    """Days with attempts or usage, marked by their own rows: the limits of a day are those that stood on it."""
    lake = home.lake()
    days = dict.fromkeys(lake.days("baseline"), "") | marks_by_day(lake, _JUDGED)
    return {day.isoformat(): mark for day, mark in days.items()}


def _baseline(home: Home, units: Sequence[str], _today: date) -> Work:
    done = judge(home, days_in(units))
    counts = {"days": len(done.days), "cells": done.cells, "reported": done.reported, "findings": len(done.findings)}
    return Work(counts | {"sent": _tell(home, done.findings)})


def _tell(home: Home, found: Sequence[Finding]) -> int:
    """Send on what was not sent on as it is now. What a receiver did not take is sent again by the next night."""
    stamps = stamps_of(home)
    marks = {each.finding_id: hashed([each.severity, each.observed, each.amount, each.last_day]) for each in found}
    fresh = stamps.due(TOLD, marks)
    news = [each for each in found if each.finding_id in fresh]
    policy = AlertPolicy.of(home.settings.alerts)
    sent = alert(home.lake(), news, policy).delivery
    if not sent.delivered:  # nobody took them, or nobody is named yet who could
        return 0
    stamps.put(TOLD, {each.finding_id: fresh[each.finding_id] for each in worth_posting(news, policy)})
    return sent.findings


# Seasons are read once for all days, and a day is judged beside those before it.
STEP = Step("baseline", baseline_marks, _baseline, together=True, rests=judged_days)
