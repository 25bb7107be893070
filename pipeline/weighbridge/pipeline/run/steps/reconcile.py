"""Gaps, their causes, findings."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from weighbridge.pipeline.reconcile.found.announced import settled
from weighbridge.pipeline.reconcile.match.lateness import Lateness
from weighbridge.pipeline.reconcile.match.lateness import settled as no_more
from weighbridge.pipeline.reconcile.reconcile import months_of as months_to_weigh
from weighbridge.pipeline.run.forgotten import settled_months
from weighbridge.pipeline.run.home import Home
from weighbridge.pipeline.run.rooms import weigh
from weighbridge.pipeline.run.step import Step, Work, hashed, marks_by_day, stamps_of
from weighbridge.pipeline.run.steps.units import touches

# Under this name stands the latest day months were weighed as of.
AS_OF = "weighed as of"
_LATEST = "latest"
_WEIGHED = ("attempt", "child", "reading", "priced_amount", "gap", "quarantine", "token_run", "engine_share")


def reconcile_marks(home: Home, today: date) -> dict[str, str]:
    """Months with rows, marked by them, by what was booked around their ends, and by what nothing can come to."""
    lake = home.lake()
    days = marks_by_day(lake, _WEIGHED)
    closed = settled(lake, home.settings.ids_grace_days)
    # A day of which nothing can come any more is weighed once more: what was provisional becomes final.
    final = no_more(days, _not_before(home, today), Lateness.of(home.settings.lateness))
    out = {}
    for month in months_to_weigh(lake):
        about = [f"{day} {mark}" for day, mark in days.items() if touches(month, day)]
        ids = (day for day in closed if touches(month, day))
        late = (f"{day} {after}" for after, day in final if touches(month, day))
        out[month] = hashed([home.key_id, *about, *ids, *late])
    return out


def _not_before(home: Home, today: date) -> date:
    """Today, or the latest day that was weighed as of: a clock that jumps back makes nothing provisional again."""
    latest = stamps_of(home).of(AS_OF).get(_LATEST)
    return today if latest is None else max(today, date.fromisoformat(latest))


def _reconcile(home: Home, months: Sequence[str], today: date) -> Work:
    as_of = _not_before(home, today)
    done = weigh(home, months, as_of=as_of).values()
    stamps_of(home).put(AS_OF, {_LATEST: as_of.isoformat()})
    counts = {"attempts": sum(each.attempts for each in done), "findings": sum(len(each.findings) for each in done)}
    return Work({"months": len(months), **counts})


STEP = Step("reconcile", reconcile_marks, _reconcile, rests=settled_months)
