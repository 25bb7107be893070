"""Histograms for everybody, of days that are settled."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from weighbridge.pipeline.run.forgotten import released_days
from weighbridge.pipeline.run.home import Home
from weighbridge.pipeline.run.rooms import share
from weighbridge.pipeline.run.step import Step, Work, marks_by_day
from weighbridge.pipeline.run.steps.units import days_in
from weighbridge.pipeline.shared.shared import SharedResult
from weighbridge.pipeline.shared.shared import due as days_to_share
from weighbridge.pipeline.shared.shared import settled as days_shared


def share_marks(home: Home, today: date) -> dict[str, str]:
    """Days that may be released and were not yet, marked by their rows: one that was too small may have grown."""
    lake = home.lake()
    days = marks_by_day(lake, ("reconciled",))
    return {day.isoformat(): days[day] for day in days_to_share(lake, today, home.settings.shared_grace_days)}


def _share(home: Home, units: Sequence[str], _today: date) -> Work:
    return _shared(share(home, days_in(units)))


def share_again_marks(home: Home, today: date) -> dict[str, str]:
    """Days that may be released, whether or not they were."""
    lake = home.lake()
    days = marks_by_day(lake, ("reconciled",))
    return {day.isoformat(): days[day] for day in days_shared(lake, today, home.settings.shared_grace_days)}


def _share_again(home: Home, units: Sequence[str], _today: date) -> Work:
    return _shared(share(home, days_in(units), again=True))


def _shared(done: SharedResult) -> Work:
    return Work({"days": len(done.days), "rows": done.rows, "too_small": len(done.small)})


STEP = Step("share", share_marks, _share, rests=released_days)
# Days that were released, made again.
AGAIN = Step("share_again", share_again_marks, _share_again)
