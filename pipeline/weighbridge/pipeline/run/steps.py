"""The steps of a night, in their order. Each reads what the ones before it wrote.

validate    day    tables held to their contract; a gate that is shut ends the night
price       day    readings to amounts
reconcile   month  gaps, causes, findings
baseline    day    limits of cells, what left them, and alerts
adjust      month  late data of closed months, as adjustments of the open one
share       day    histograms for everybody, of days that are settled
report      month  page, workbook and tables
publish     month  the page of the shared edition

Two more are done where days of the past are done anew: `read` (day, reports to readings) before all of them, and
`share_again` (day, released histograms made again) instead of `share`.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Callable, Sequence
from datetime import date, timedelta

import polars as pl

from weighbridge.pipeline.baseline.alerts import alert
from weighbridge.pipeline.baseline.policy import AlertPolicy
from weighbridge.pipeline.baseline.webhook import worth_posting
from weighbridge.pipeline.close.adjust import adjust
from weighbridge.pipeline.close.closed import closes, compared_with
from weighbridge.pipeline.lake.lake import Lake
from weighbridge.pipeline.price.book import PriceBook
from weighbridge.pipeline.reconcile.announced import settled
from weighbridge.pipeline.reconcile.period import ends
from weighbridge.pipeline.reconcile.reconcile import months_of as months_to_weigh
from weighbridge.pipeline.report.report import SHARED, page_of
from weighbridge.pipeline.run.forgotten import (
    AROUND,
    forgotten,
    judged_days,
    published_months,
    released_days,
    settled_months,
)
from weighbridge.pipeline.run.home import Home
from weighbridge.pipeline.run.rooms import (
    all_months,
    check,
    is_simulated,
    judge,
    priced_in,
    publish,
    read_anew,
    set_prices,
    share,
    weigh,
    write_reports,
)
from weighbridge.pipeline.run.step import Step, Work, hashed, marks_by_day, settle_rest, stamps_of
from weighbridge.pipeline.run.waivers import ended_waivers
from weighbridge.pipeline.shared.shared import SharedResult
from weighbridge.pipeline.shared.shared import due as days_to_share
from weighbridge.pipeline.shared.shared import settled as days_shared
from weighbridge.pipeline.validate.validate import BEFORE_RECONCILE
from weighbridge.schemas import canonical
from weighbridge.schemas.enumerations import FindingOrigin
from weighbridge.schemas.finding import Finding
from weighbridge.schemas.tables import TABLES

_WEIGHED = ("attempt", "child", "reading", "priced_amount", "gap", "quarantine", "token_run")
# Under this name stands which findings of baselines were sent on.
TOLD = "findings told"
_CONTRACT = tuple(name for name in BEFORE_RECONCILE if TABLES[name].daily and name != "quarantine")
_JUDGED = ("attempt", "reading", "priced_amount")
_CLOSED = ("attempt", "usage_report", "reading", "priced_amount")
_REPORTED = ("attempt", "reading", "priced_amount", "reconciled", "gap_cause", "quarantine", "gap")


def read_marks(home: Home, _today: date) -> dict[str, str]:
    """Days with usage reports."""
    return {day.isoformat(): mark for day, mark in marks_by_day(home.lake(), ("usage_report",)).items()}


def _read(home: Home, units: Sequence[str], _today: date) -> Work:
    return Work({"readings": read_anew(home, days_in(units))})


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


def price_marks(home: Home, _today: date) -> dict[str, str]:
    """Days with readings, marked by them and by the prices that hold on that day."""
    lake = home.lake()
    prices = prices_by_day(PriceBook.load(home.settings.prices))
    days = dict.fromkeys(lake.days("priced_amount"), "") | marks_by_day(lake, ("reading",))
    return {day.isoformat(): hashed([mark, prices(day)]) for day, mark in days.items()}


def prices_by_day(book: PriceBook) -> Callable[[date], str]:
    """A function that marks a day by the rows of the book that hold on it, in their layers."""
    rows = [(number, row) for number, layer in enumerate(book.layers) for row in layer]
    turns = sorted({turn for _, row in rows for turn in (row.valid_from, row.valid_to) if turn})
    marks = [
        hashed(f"{number} {row.price_id}" for number, row in rows if row.holds_on(begin))
        for begin in (date.min, *turns)
    ]
    return lambda day: marks[bisect_right(turns, day)]


def _price(home: Home, units: Sequence[str], _today: date) -> Work:
    days = days_in(units)
    return Work({"readings": set_prices(home, days), "priced": priced_in(home, days)})


def reconcile_marks(home: Home, _today: date) -> dict[str, str]:
    """Months with rows, marked by them, by what was booked around their ends, and by what can get no more ids."""
    lake = home.lake()
    days = marks_by_day(lake, _WEIGHED)
    closed = settled(lake, home.settings.ids_grace_days)
    out = {}
    for month in months_to_weigh(lake):
        about = [f"{day} {mark}" for day, mark in days.items() if _touches(month, day)]
        out[month] = hashed([home.key_id, *about, *(day for day in closed if _touches(month, day))])
    return out


def _reconcile(home: Home, months: Sequence[str], _today: date) -> Work:
    done = weigh(home, months).values()
    counts = {"attempts": sum(each.attempts for each in done), "findings": sum(len(each.findings) for each in done)}
    return Work({"months": len(months), **counts})


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


def report_marks(home: Home, _today: date) -> dict[str, str]:
    """Months with attempts, marked by their rows, findings with their life, closes beside, and how they are shown."""
    lake = home.lake()
    days = marks_by_day(lake, _REPORTED)
    settings = home.settings
    place = os.path.relpath(home.reports, home.root)  # an installation may be moved
    shown = [settings.title, settings.timezone, place, is_simulated(lake)]
    found, closed = _findings(lake), closes(lake)
    gone, out = forgotten(home), {}
    for month in months_to_report(lake, settings.timezone):
        if gone.page(month) and not _page(home, month):
            continue
        about = [f"{day} {mark}" for day, mark in days.items() if _touches(month, day)]
        beside = [
            f"{each} {closed[each]['root']} {(settings.closes / each).is_dir()}"
            for each in compared_with(month)
            if each in closed
        ]
        out[month] = hashed([*shown, *about, *beside, found(month)])
    return out


def months_to_report(lake: Lake, zone: str) -> list[str]:
    """The months that attempts or reports lie in, as they are counted in the zone of the reports.

    Where the lake begins or ends beside the end of a UTC month, a zone may move attempts into a month of its own.
    """
    months = set(all_months(lake))
    if zone == "UTC":
        return sorted(months)
    held = set(lake.days("attempt"))
    for month in all_months(lake):
        for edge in held & set(ends(month)):
            moved = lake.scan("attempt", first=edge, last=edge, columns=["arrived_at"]).select(
                pl.col("arrived_at").dt.convert_time_zone(zone).dt.strftime("%Y-%m").unique().drop_nulls()
            )
            months |= set(moved.collect()["arrived_at"])
    return sorted(months)


def _page(home: Home, month: str) -> bool:
    return page_of(home.reports, month).is_file()


def _findings(lake: Lake) -> Callable[[str], str]:
    """A function that marks a month by its findings and those of the installation, each with its life."""
    findings, lives = (lake.scan(table).collect() for table in ("finding", "finding_status"))

    def mark(month: str) -> str:
        own = findings.filter(pl.col("period").is_in([month, "all"]))
        life = lives.filter(pl.col("finding_id").is_in(own["finding_id"].implode()))
        return hashed(_digest(*pair) for pair in (("finding", own), ("finding_status", life)))

    return mark


def _digest(table: str, rows: pl.DataFrame) -> str:
    return canonical.digest(canonical.rows(TABLES[table], rows.to_arrow(compat_level=pl.CompatLevel.oldest())))


def _report(home: Home, months: Sequence[str], _today: date) -> Work:
    files = write_reports(home, months)
    return Work({"reports": len(files)}, {month: made.html for month, made in files.items()})


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


def _touches(month: str, day: date) -> bool:
    first, last = ends(month)
    return first - AROUND <= day <= last + AROUND


def days_in(units: Sequence[str]) -> list[date]:
    """The days that units of steps by day name."""
    return [date.fromisoformat(unit) for unit in units]


READ = Step("read", read_marks, _read)
# One page shows all the days that were looked at.
VALIDATE = Step("validate", validate_marks, _validate, together=True)
PRICE = Step("price", price_marks, _price)
RECONCILE = Step("reconcile", reconcile_marks, _reconcile, rests=settled_months)
# Seasons are read once for all days, and a day is judged beside those before it.
BASELINE = Step("baseline", baseline_marks, _baseline, together=True, rests=judged_days)
ADJUST = Step("adjust", adjust_marks, _adjust)
SHARE = Step("share", share_marks, _share, rests=released_days)
SHARE_AGAIN = Step("share_again", share_again_marks, _share_again)
REPORT = Step("report", report_marks, _report, _page, rests=settled_months)
PUBLISH = Step("publish", publish_marks, _publish, _published, rests=published_months)
# What a night does with whatever is due.
NIGHT: tuple[Step, ...] = (VALIDATE, PRICE, RECONCILE, BASELINE, ADJUST, SHARE, REPORT, PUBLISH)
# What is done anew with days of the past: everything that rests on how they are read.
ANEW: tuple[Step, ...] = (READ, *NIGHT)
STEPS = {step.name: step for step in (*ANEW, SHARE_AGAIN)}


def settle(home: Home) -> None:
    """Finish what a run that deleted rows has left to be noted; whoever begins a run does this first.

    Raises:
        LakeBusyError: another process is writing.
    """
    if stamps_of(home).resting() is not None:
        with home.lake().lock():
            settle_rest(home, NIGHT)
