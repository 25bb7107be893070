"""Engine counters beside attempts, and what they leave to attempts that never finished."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from weighbridge.pipeline.engine.engine import months_of, weigh_engines
from weighbridge.pipeline.run.forgotten import settled_months
from weighbridge.pipeline.run.home import Home
from weighbridge.pipeline.run.step import Step, Work, hashed, marks_by_day
from weighbridge.pipeline.run.steps.units import touches

_WEIGHED = ("engine_counter", "attempt", "child", "reading", "alias")


def engine_marks(home: Home, _today: date) -> dict[str, str]:
    """Months in which anything was scraped, marked by that and by their attempts."""
    lake = home.lake()
    months = months_of(lake)
    days = marks_by_day(lake, _WEIGHED) if months else {}
    return {month: hashed(f"{day} {mark}" for day, mark in days.items() if touches(month, day)) for month in months}


def _engine(home: Home, months: Sequence[str], _today: date) -> Work:
    done = [weigh_engines(home.lake(), month=month) for month in months]
    windows, findings = sum(each.windows for each in done), sum(len(each.findings) for each in done)
    return Work({"months": len(months), "windows": windows, "findings": findings})


STEP = Step("engine", engine_marks, _engine, rests=settled_months)
