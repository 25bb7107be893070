"""Closed months as they were closed: what reports read, and what they compare with, whatever the lake says now."""

from __future__ import annotations

import shutil
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.pipeline.close.conftest import TENANT_A, TENANT_B, Office, book

from weighbridge.pipeline.close.closed import closed_figures, closed_records, compared_with
from weighbridge.pipeline.close.figures import Figures, flat
from weighbridge.pipeline.close.month_figures import figures
from weighbridge.pipeline.close.plain import DamagedError
from weighbridge.pipeline.report.period import period_of
from weighbridge.pipeline.report.query.classes import class_money, token_classes
from weighbridge.pipeline.report.query.gaps import statuses
from weighbridge.pipeline.report.query.totals import amounts, daily, totals
from weighbridge.pipeline.report.report import write_report
from weighbridge.pipeline.report.view import View
from weighbridge.schemas.enumerations import Severity

pytestmark = [pytest.mark.xdist_group("closed months"), pytest.mark.system]


def changed_later(office: Office) -> None:
    """Everything about March changes in the lake: late rows, prices, findings."""
    office.both(60, "2026-03-09T10:00:00", 1000, 100)
    office.prices = book(gpt="3")
    office.weigh()
    office.find("found_later", Severity.WARNING)


@pytest.fixture(scope="module")
def overtaken(closed_once: Office, tmp_path_factory: pytest.TempPathFactory) -> Office:
    """March closed, and then everything about it changed; only to be read."""
    office = closed_once.copy(tmp_path_factory.mktemp("overtaken") / "office")
    changed_later(office)
    assert office.lake
    return office


def test_the_report_of_a_closed_month_never_changes(closed_once: Office, overtaken: Office, tmp_path: Path) -> None:
    before = write_report(closed_once.lake, month="2026-03", out=tmp_path / "before")
    now = write_report(overtaken.lake, month="2026-03", out=tmp_path / "now")
    records = closed_records(overtaken.lake, overtaken.packs, ["2026-03"])
    frozen = write_report(records, month="2026-03", out=tmp_path / "frozen")
    assert now.digest != before.digest
    assert frozen.digest == before.digest
    assert frozen.html.read_bytes() == before.html.read_bytes()
    assert frozen.xlsx.read_bytes() == before.xlsx.read_bytes()


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Pacific/Auckland"])
def test_it_does_not_change_in_other_zones_either(closed_once: Office, overtaken: Office, zone: str) -> None:
    # March has the days on which Berlin and New York turn their clocks; Auckland is most of a day ahead.
    def shown(lake: Any) -> list[Any]:
        view = View(lake, period_of(month="2026-03", first=None, last=None, zone=zone, held=[]))
        return [view.get(sheet).rows for sheet in (totals, daily, token_classes, statuses)]

    before = shown(closed_once.lake)
    assert shown(overtaken.lake) != before
    assert shown(closed_records(overtaken.lake, overtaken.packs, ["2026-02", "2026-03", "2026-04"])) == before


def test_an_open_month_is_read_from_the_lake(overtaken: Office) -> None:
    records = closed_records(overtaken.lake, overtaken.packs, ["2026-04"])
    for table in ("attempt", "reading", "reconciled"):
        april = pl.col("day").dt.month() == 4
        held = records.scan(table).filter(april).sort("attempt_lo").collect()
        assert held.equals(overtaken.lake.scan(table).filter(april).sort("attempt_lo").collect())


@pytest.mark.parametrize(("first", "last"), [(None, None), (date(2026, 3, 15), None), (None, date(2026, 3, 15))])
def test_a_range_that_spans_both_is_read_from_both(
    closed_once: Office, overtaken: Office, first: date | None, last: date | None
) -> None:
    before = closed_once.lake.scan("reading", first=first, last=last).sort("attempt_lo", "day").collect()
    records = closed_records(overtaken.lake, overtaken.packs, ["2026-03", "2026-04"])
    held = records.scan("reading", first=first, last=last).sort("attempt_lo", "day").collect()
    assert held.equals(before)
    assert records.days("reading") == closed_once.lake.days("reading")
    assert records.days("token_run") == []


def test_findings_of_a_closed_month_are_those_it_was_closed_with(closed_once: Office, overtaken: Office) -> None:
    of_march = pl.col("period") == "2026-03"
    before, now = (
        set(o.lake.scan("finding").filter(of_march).collect()["finding_id"]) for o in (closed_once, overtaken)
    )
    assert now != before
    for months in (["2026-03"], ["2026-03", "2026-04"]):
        held = closed_records(overtaken.lake, overtaken.packs, months).scan("finding").filter(of_march)
        assert set(held.collect()["finding_id"]) == before


def test_a_closed_month_is_never_read_from_anywhere_else(closed: Office) -> None:
    shutil.move(closed.pack(), closed.packs / "elsewhere")
    with pytest.raises(DamagedError, match="restore it from a backup"):
        closed_records(closed.lake, closed.packs, ["2026-03"])
    shutil.copytree(closed.packs / "elsewhere", closed.pack())
    manifest = closed.pack() / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"2026-03"', '"2026-04"'))
    with pytest.raises(DamagedError):
        closed_records(closed.lake, closed.packs, ["2026-03"])


def test_figures_of_a_closed_month_are_those_it_was_closed_with(closed_once: Office, overtaken: Office) -> None:
    found = closed_figures(overtaken.lake, overtaken.packs, "2026-03")
    assert found is not None
    assert flat(found.figures) == flat(figures(closed_once.lake, "2026-03"))
    assert flat(found.figures) != flat(figures(overtaken.lake, "2026-03"))
    (row,) = overtaken.lake.scan("close").collect().to_dicts()
    assert (found.period, found.root, found.figures_digest) == ("2026-03", row["root"], row["figures_digest"])


@pytest.mark.parametrize(
    ("month", "before", "a_year_before"),
    [
        ("2026-04", "2026-03", "2025-04"),
        ("2027-01", "2026-12", "2026-01"),
        ("2028-02", "2028-01", "2027-02"),
        ("0001-01", "0000-12", "0000-01"),
    ],
)
def test_a_month_is_compared_with_the_one_before_and_the_same_a_year_before(
    month: str, before: str, a_year_before: str
) -> None:
    assert compared_with(month) == (before, a_year_before)


def one(found: Figures, section: str, **by: str) -> dict[str, Any]:
    """The values of the only entry of a section with these labels."""
    (entry,) = [e for e in found[section] if all(e.about(name) == label for name, label in by.items())]
    return dict(entry.values)


def test_the_figures_are_worked_out_right(filled_once: Office) -> None:
    found = figures(filled_once.lake, "2026-03")
    usage = one(found, "usage")
    # 1, 2, 3: 100 + 20; 4: 300 + 50; 5: 30 + 5; 7: 71 + 10, its last revision. 6 is booked in April.
    assert (usage["reports"], usage["input_tokens"], usage["output_tokens"]) == (6, 701, 125)
    assert (usage["tokens"], usage["cache_read"], usage["input_uncached"]) == (826, 40, 661)
    money = one(found, "money", currency="USD", status="priced")
    gpt = Decimal((100 + 60 + 300 + 30 + 71) * 2 + (20 + 20 + 50 + 5 + 10) * 8) + Decimal(40) * 2 / 10
    assert money["amount"] == (gpt + Decimal(100) * Decimal("0.4") + Decimal(20) * Decimal("1.6")) / 10**6
    attempts = one(found, "attempts")
    assert (attempts["attempts"], attempts["input_computed"], attempts["output_computed"]) == (6, 771, 140)
    assert one(found, "usage_by_tenant", tenant=TENANT_A)["tokens"] == 441
    assert one(found, "usage_by_tenant", tenant=TENANT_B)["tokens"] == 350
    assert found["losses"] == []  # the only one is recorded on a day of April
    assert one(found, "invoices")["amount"] == Decimal("1.25")
    assert one(found, "quarantine")["rows"] == 1
    assert one(found, "files") == {
        "files": 2, "rows_in": 18, "rows_out": 18, "rows_quarantined": 0, "rows_duplicate": 0,
    }  # fmt: skip


def test_the_figures_are_those_of_the_report(filled_once: Office) -> None:
    found = figures(filled_once.lake, "2026-03")
    view = View(filled_once.lake, period_of(month="2026-03", first=None, last=None, zone="UTC", held=[]))
    told = view.get(totals)
    usage, attempts = one(found, "usage"), one(found, "attempts")
    for side in ("input", "output"):
        assert told.figure(side, measure="reported").value == usage[f"{side}_tokens"]
        assert told.figure(side, measure="computed").value == attempts[f"{side}_computed"]
    assert told.figure("output", measure="delivered").value == attempts["output_delivered"]
    assert told.figure("total", measure="attended").value == attempts["attended"]
    money = one(found, "money", currency="USD", status="priced")
    assert view.get(amounts).figure("amount", currency="USD").value == money["amount"]
    by_class = view.get(class_money)
    for name in ("input_uncached", "cache_read", "output_visible"):
        assert by_class.figure("amount", currency="USD", token_class=name).value == money[f"amount_{name}"]
    by_model = view.get(token_classes)
    for entry in found["usage_by_model"]:
        shown = by_model.row(model=entry.about("model"), provider=entry.about("provider"))
        assert shown is not None
        assert by_model.figure("cache_read", model=entry.about("model")).value == entry.values["cache_read"]
    days = view.get(daily)
    for entry in found["usage_by_day"]:
        day = date.fromisoformat(str(entry.about("day")))
        assert days.figure("reported_input_tokens", day=day).value == entry.values["input_tokens"]
    outcomes = view.get(statuses)
    for direction in ("input", "output"):
        matched = [
            e for e in found["comparisons"] if e.about("direction") == direction and e.about("status") == "MATCHED"
        ]
        shown_row = outcomes.figure("attempts", direction=direction, status="MATCHED")
        assert shown_row.value == sum(int(entry.values["comparisons"] or 0) for entry in matched)


def test_a_waiver_counts_as_it_stands_when_the_month_ends(filled_once: Office) -> None:
    # It ends in June: whenever the figures are made, in March it stood.
    states = {entry.about("code"): entry.about("state") for entry in figures(filled_once.lake, "2026-03")["findings"]}
    assert states["usage_drift"] == "waived"
