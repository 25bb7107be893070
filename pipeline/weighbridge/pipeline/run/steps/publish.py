"""The page of the shared edition of each month."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import date

from weighbridge.pipeline.report.report import SHARED, page_of
from weighbridge.pipeline.run.forgotten import forgotten, published_months
from weighbridge.pipeline.run.home import Home
from weighbridge.pipeline.run.rooms import is_simulated, publish
from weighbridge.pipeline.run.step import Step, Work, hashed, marks_by_day


def publish_marks(home: Home, _today: date) -> dict[str, str]:
    """Months of which anything was released, marked by that and by how it is shown."""
    lake = home.lake()
    days = marks_by_day(lake, ("shared_histogram",))
    place = os.path.relpath(home.reports, home.root)
    shown = [home.settings.title, place, is_simulated(lake)]
    gone = forgotten(home)
    months = sorted({f"{day:%Y-%m}" for day in days})
    months = [month for month in months if _published(home, month) or not gone.page(month)]
    return {
        month: hashed([*shown, *(f"{day} {mark}" for day, mark in days.items() if f"{day:%Y-%m}" == month)])
        for month in months
    }


def _publish(home: Home, months: Sequence[str], _today: date) -> Work:
    files = publish(home, months)
    return Work({"reports": len(files)}, {month: made.html for month, made in files.items()})


def _published(home: Home, month: str) -> bool:
    return page_of(home.reports, month, SHARED).is_file()


STEP = Step("publish", publish_marks, _publish, _published, rests=published_months)
