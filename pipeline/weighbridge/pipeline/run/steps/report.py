"""Page, workbook and tables of each month."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import date

import polars as pl

from weighbridge.pipeline.close.closed import closes, compared_with
from weighbridge.pipeline.lake.lake import Lake
from weighbridge.pipeline.reconcile.life.carried import WEIGHTY
from weighbridge.pipeline.reconcile.life.material import Materiality
from weighbridge.pipeline.reconcile.period import ends
from weighbridge.pipeline.report.report import page_of
from weighbridge.pipeline.run.forgotten import forgotten, settled_months
from weighbridge.pipeline.run.home import Home
from weighbridge.pipeline.run.rooms import all_months, is_simulated, write_reports
from weighbridge.pipeline.run.step import Step, Work, hashed, marks_by_day
from weighbridge.pipeline.run.steps.units import touches
from weighbridge.schemas import canonical
from weighbridge.schemas.tables import TABLES

_REPORTED = (
    *("attempt", "reading", "priced_amount", "reconciled", "gap_cause", "quarantine", "gap", "audit_cell"),
    *("engine_gap", "engine_gap_cause"),
)


def report_marks(home: Home, _today: date) -> dict[str, str]:
    """Months with attempts, marked by their rows, findings with their life, closes beside, and how they are shown."""
    lake = home.lake()
    days = marks_by_day(lake, _REPORTED)
    settings = home.settings
    place = os.path.relpath(home.reports, home.root)  # an installation may be moved
    matters = Materiality.of(settings.material).plain()
    shown = [settings.title, settings.timezone, place, is_simulated(lake), *sorted(map(str, matters.items()))]
    found, closed, billed = _findings(lake), closes(lake), _bills(lake)
    gone, out = forgotten(home), {}
    for month in months_to_report(lake, settings.timezone):
        if gone.page(month) and not _page(home, month):
            continue
        about = [f"{day} {mark}" for day, mark in days.items() if touches(month, day)]
        beside = [
            f"{each} {closed[each]['root']} {(settings.closes / each).is_dir()}"
            for each in compared_with(month)
            if each in closed
        ]
        out[month] = hashed([*shown, *about, *beside, found(month), billed(month)])
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
    """A function that marks a month by its findings, those it may take over and those of the installation.

    Each with its life. Disputes of all months stand on each page, so they are part of every mark.
    """
    findings, lives = (lake.scan(table).collect() for table in ("finding", "finding_status"))

    disputed = lives.filter(pl.col("amount").is_not_null())["finding_id"].unique().implode()

    def mark(month: str) -> str:
        taken = (pl.col("period") < month) & pl.col("severity").is_in(WEIGHTY)
        own = findings.filter(pl.col("period").is_in([month, "all"]) | taken | pl.col("finding_id").is_in(disputed))
        life = lives.filter(pl.col("finding_id").is_in(own["finding_id"].implode()))
        return hashed(_digest(*pair) for pair in (("finding", own), ("finding_status", life)))

    return mark


def _bills(lake: Lake) -> Callable[[str], str]:
    """A function that marks a month by what its bills were found to be."""
    cells = lake.scan("invoice_gap").collect()
    return lambda month: _digest("invoice_gap", cells.filter(pl.col("period") == month))


def _digest(table: str, rows: pl.DataFrame) -> str:
    return canonical.digest(canonical.rows(TABLES[table], rows.to_arrow(compat_level=pl.CompatLevel.oldest())))


def _report(home: Home, months: Sequence[str], _today: date) -> Work:
    files = write_reports(home, months)
    return Work({"reports": len(files)}, {month: made.html for month, made in files.items()})


STEP = Step("report", report_marks, _report, _page, rests=settled_months)
