"""Write the report of a period: a page, a workbook, a folder of CSV tables. The same lake gives the same bytes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from weighbridge.pipeline.reconcile.life.material import Materiality
from weighbridge.pipeline.report import sections, shared_sections
from weighbridge.pipeline.report.earlier import Closes
from weighbridge.pipeline.report.page import NOTICE, render
from weighbridge.pipeline.report.period import Period, known_zone, period_of
from weighbridge.pipeline.report.sheet import Block, Section, Sheet, sheets_of
from weighbridge.pipeline.report.tables import csv_bytes, digest_of
from weighbridge.pipeline.report.view import Records, View
from weighbridge.pipeline.report.workbook import write_workbook
from weighbridge.schemas.discovery import declared
from weighbridge.schemas.errors import ConfigError

TITLE = "Token and cost report"
BILLING, SHARED = "billing", "shared"
EDITIONS = {
    BILLING: "Billing edition: exact figures, tenants under pseudonyms",
    SHARED: "Shared edition: for everybody, no figure of fewer than 11 attempts",
}
# Edition -> its sections, and the tables whose days it is about.
_SECTIONS = {BILLING: sections, SHARED: shared_sections}
_HELD = {BILLING: ("attempt", "reading"), SHARED: ("shared_histogram",)}


@dataclass(frozen=True, slots=True)
class ReportFiles:
    """Where a report was written.

    Attributes:
        html: the page.
        xlsx: the workbook.
        csv_dir: the folder of CSV tables.
        tables: name of a table -> its CSV file.
        digest: SHA-256 over the CSV tables: the figures of the report in one number.
    """

    html: Path
    xlsx: Path
    csv_dir: Path
    tables: Mapping[str, Path]
    digest: str


def write_report(
    lake: Records,
    *,
    month: str | None = None,
    first: date | None = None,
    last: date | None = None,
    out: Path,
    zone: str = "UTC",
    title: str | None = None,
    simulated: bool = False,
    edition: str = BILLING,
    closes: Closes | None = None,
    material: Materiality | None = None,
) -> ReportFiles:
    """Write the report of a month or of a range of days.

    Args:
        lake: where the tables are; only read.
        month: `YYYY-MM`; or
        first, last: days, both inclusive. With neither, all the days the lake holds.
        out: the folder; made if it is not there. Files of an earlier report on the same period are overwritten.
        zone: the time zone whose days are meant.
        title: the heading; by default `Token and cost report`.
        simulated: the data was made by the product itself; the report then says so everywhere.
        edition: `billing`, or `shared`: it goes into a folder of that name inside `out`, and counts UTC days.
        closes: of a month in the billing edition, the months it stands beside; null: none is spoken of.
        material: which findings matter; null: all.

    Raises:
        ConfigError: period, zone or edition cannot be used as given.
        LakeError: the lake cannot be read.
    """
    if edition not in EDITIONS:
        raise ConfigError(f"there is no edition {edition!r} of the report; choose one of {', '.join(EDITIONS)}")
    held = sorted({day for table in _HELD[edition] for day in lake.days(table)}) if month is None else []
    known_zone(zone)
    days_of = "UTC" if edition == SHARED else zone
    period = period_of(month=month, first=first, last=last, zone=days_of, held=held)
    beside = closes if period.month and edition == BILLING else None
    return _written(
        View(lake, period, simulated=simulated, closes=beside, material=material), out, title or TITLE, edition
    )


def page_of(out: Path, period: str, edition: str = BILLING) -> Path:
    """The page of a period, `YYYY-MM` or `first_last`, in the folder of reports."""
    if edition == BILLING:
        return out / f"weighbridge-{period}.html"
    return out / edition / f"weighbridge-{edition}-{period}.html"


def contents(view: View, edition: str = BILLING) -> list[tuple[Section, tuple[Block, ...]]]:
    """Every section of an edition with its blocks, in order."""
    found = sorted(declared(_SECTIONS[edition], "SECTION", Section).values(), key=lambda section: section.order)
    return [(section, section.query(view)) for section in found]


def _written(view: View, out: Path, title: str, edition: str) -> ReportFiles:
    filled = contents(view, edition)
    sheets = [sheet for _, blocks in filled for sheet in sheets_of(blocks)]
    digest = digest_of(sheets)
    page = render(
        filled,
        view.period,
        title=title,
        edition=EDITIONS[edition],
        simulated=view.simulated,
        digest=digest,
        named=edition == BILLING,
    )
    html = page_of(out, view.period.name, edition)
    html.parent.mkdir(parents=True, exist_ok=True)
    xlsx, folder = html.with_suffix(".xlsx"), html.with_name(f"{html.stem}-csv")
    tables = _write_tables(folder, sheets)
    _replace(html, page.encode())
    _write_book(xlsx, sheets, view.period, title, simulated=view.simulated)
    return ReportFiles(html, xlsx, folder, tables, digest)


def _write_tables(folder: Path, sheets: list[Sheet]) -> dict[str, Path]:
    folder.mkdir(exist_ok=True)
    paths = {sheet.name: folder / f"{sheet.name}.csv" for sheet in sheets}
    for sheet in sheets:
        _replace(paths[sheet.name], csv_bytes(sheet))
    return paths


def _write_book(path: Path, sheets: list[Sheet], period: Period, title: str, *, simulated: bool) -> None:
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    caption = f"{period.label}, days in {period.zone}"
    try:
        write_workbook(draft, sheets, title=title, caption=caption, notice=NOTICE if simulated else "")
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def _replace(path: Path, content: bytes) -> None:
    """Write a file whole or not at all."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        draft.write_bytes(content)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
