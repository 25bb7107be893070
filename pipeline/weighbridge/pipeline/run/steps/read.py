"""Usage reports of days of the past to readings, anew."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from weighbridge.pipeline.run.home import Home
from weighbridge.pipeline.run.rooms import read_anew
from weighbridge.pipeline.run.step import Step, Work, marks_by_day
from weighbridge.pipeline.run.steps.units import days_in


def read_marks(home: Home, _today: date) -> dict[str, str]:
    """Days with usage reports."""
    return {day.isoformat(): mark for day, mark in marks_by_day(home.lake(), ("usage_report",)).items()}


def _read(home: Home, units: Sequence[str], _today: date) -> Work:
    return Work({"readings": read_anew(home, days_in(units))})


STEP = Step("read", read_marks, _read)
