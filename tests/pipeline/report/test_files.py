"""The files: the same lake gives the same bytes, CSV is exact, the workbook holds text and rounded numbers."""

from __future__ import annotations

import csv
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from tests.pipeline.report.conftest import GPT, QWEN, World, rich

from weighbridge.pipeline.lake import Lake, polars_schema
from weighbridge.pipeline.report.report import ReportFiles, write_report
from weighbridge.schemas.enumerations import Severity
from weighbridge.schemas.errors import ConfigError

Written = Callable[..., ReportFiles]
MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> ReportFiles:
    """The report of March of the rich world, written once; tests read it only."""
    return write_report(rich(), month="2026-03", out=tmp_path_factory.mktemp("usual"))


def all_bytes(files: ReportFiles) -> dict[str, bytes]:
    """Every file of a report."""
    paths = [files.html, files.xlsx, *files.tables.values()]
    assert set(files.csv_dir.iterdir()) == set(files.tables.values())
    return {path.name: path.read_bytes() for path in paths}


def table(files: ReportFiles, name: str) -> list[dict[str, str]]:
    """A CSV file as rows."""
    with files.tables[name].open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_two_runs_give_the_same_bytes(tmp_path: Path, written: Written) -> None:
    one = written(rich(), out=tmp_path / "one", simulated=True)
    two = written(rich(), out=tmp_path / "two", simulated=True)
    assert all_bytes(one) == all_bytes(two)
    assert one.digest == two.digest


def test_writing_again_changes_nothing_and_leaves_nothing_behind(world: World, written: Written) -> None:
    files = written(world)
    before = all_bytes(files)
    assert all_bytes(written(world)) == before
    assert sorted(path.name for path in files.html.parent.iterdir()) == [
        "weighbridge-2026-03-csv",
        "weighbridge-2026-03.html",
        "weighbridge-2026-03.xlsx",
    ]


def test_a_real_lake_gives_the_same_bytes(tmp_path: Path, world: World, written: Written, usual: ReportFiles) -> None:
    import polars as pl  # noqa: PLC0415 - only this test makes frames

    lake = Lake.create(tmp_path / "lake")
    for name, rows in world.put.items():
        known = {key: kind for key, kind in polars_schema(name).items() if any(key in row for row in rows)}
        lake.append(name, pl.DataFrame(rows, schema=known))
    assert all_bytes(written(lake, out=tmp_path / "lake-report")) == all_bytes(usual)


def test_what_comes_later_does_not_change_the_report_of_a_month(
    world: World, written: Written, usual: ReportFiles
) -> None:
    before = all_bytes(usual)
    world.attempt(20, "2026-04-02T00:00:00", segment="d" * 64)
    world.reading(20, "2026-04-02", 10, 5, segment="d" * 64)
    world.price(20, "2026-04-02", "1")
    world.compare(20, "2026-04-02", "input", 10, 10)
    world.find("april_too", Severity.ERROR, {"provider": "openai"}, period="2026-04")
    world.put["invoice_line"].append(
        {
            "invoice_id": "a",
            "line_id": "1",
            "provider": "openai",
            "category": "Usage",
            "period_start": datetime(2026, 4, 1, tzinfo=UTC),
            "period_end": datetime(2026, 5, 1, tzinfo=UTC),
            "revision": 0,
        }
    )
    assert all_bytes(written(world)) == before


def test_invoice_lines_of_the_month_are_mentioned(world: World, written: Written) -> None:
    line = {"invoice_id": "a", "line_id": "1", "provider": "openai", "category": "Usage", "revision": 0}
    begin, end = datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 4, 1, tzinfo=UTC)
    world.put["invoice_line"].append({**line, "period_start": begin, "period_end": end})
    assert "Invoice lines are held: the section on invoices" in written(world).html.read_text(encoding="utf-8")


def test_csv_is_exact_and_null_is_empty(usual: ReportFiles) -> None:
    files = usual
    model = next(row for row in table(files, "by_model") if row["model"] == GPT)
    assert (model["amount_usd"], model["amount_eur"], model["tokens_p95"]) == ("0.00154", "", "560")
    assert table(files, "findings")[0]["finding_id"].startswith(table(files, "findings")[0]["short_id"])
    assert [row["amount"] for row in table(files, "top_requests")][-1] == ""


def test_csv_holds_no_formula(bare: World, written: Written) -> None:
    bare.attempt(
        1, "2026-03-01T10:00:00", task="=HYPERLINK(A1)", route="@sum", tenant="unassigned", model_served="-2+3"
    )
    files = written(bare)
    assert table(files, "by_task")[0]["task"] == "'=HYPERLINK(A1)"
    assert table(files, "by_route")[0]["route"] == "'@sum"
    assert table(files, "by_model")[0]["model"] == "'-2+3"


def test_a_negative_number_is_left_a_number(usual: ReportFiles) -> None:
    changes = [row["change"] for row in table(usual, "waterfall")]
    assert changes[:5] == ["", "-1000", "200", "-10", "-10"]


class Book:
    """A workbook, read from its XML."""

    def __init__(self, path: Path) -> None:
        with zipfile.ZipFile(path) as archive:
            self.files = {info.filename: archive.read(info) for info in archive.infolist()}
            self.times = {info.date_time for info in archive.infolist()}
        shared = ET.fromstring(self.files["xl/sharedStrings.xml"])
        self.strings = ["".join(part.text or "" for part in item.iter(f"{MAIN}t")) for item in shared]
        book = ET.fromstring(self.files["xl/workbook.xml"])
        self.names = [sheet.attrib["name"] for sheet in book.iter(f"{MAIN}sheet")]

    def rows(self, name: str) -> list[list[str | float]]:
        """The cells of a tab; text as text, numbers as numbers."""
        place = self.names.index(name) + 1
        root = ET.fromstring(self.files[f"xl/worksheets/sheet{place}.xml"])
        return [[self._cell(cell) for cell in row.iter(f"{MAIN}c")] for row in root.iter(f"{MAIN}row")]

    def _cell(self, cell: ET.Element) -> str | float:
        value = cell.findtext(f"{MAIN}v")
        assert value is not None
        return self.strings[int(value)] if cell.attrib.get("t") == "s" else float(value)


def test_the_workbook_has_a_tab_for_each_table(world: World, written: Written) -> None:
    files = written(world, simulated=True)
    book = Book(files.xlsx)
    assert book.names == list(files.tables)
    assert book.times == {(1980, 1, 1, 0, 0, 0)}
    assert b"2000-01-01T00:00:00Z" in book.files["docProps/core.xml"]
    assert not [name for name, content in book.files.items() if b"<f>" in content or b"<hyperlink" in content]
    for name in book.names:
        assert str(book.rows(name)[2][0]).startswith("Simulated data"), name


def test_money_in_the_workbook_is_a_rounded_number_beside_exact_text(bare: World, written: Written) -> None:
    exact = "1234.567890123456789012"
    bare.reading(1, "2026-03-01", 10, 5, input_uncached=10, output_visible=5)
    bare.price(1, "2026-03-01", exact)
    rows = Book(written(bare).xlsx).rows("amounts")
    assert rows[3][:3] == ["Currency", "Amount", "Amount (exact)"]
    assert rows[4][:3] == ["USD", 1234.57, exact]


def test_numbers_a_spreadsheet_would_round_are_text(bare: World, written: Written) -> None:
    bare.reading(1, "2026-03-01", 10**17 + 1, 5, input_uncached=10**17 + 1, output_visible=5)
    rows = Book(written(bare).xlsx).rows("by_task")
    assert rows[4][2:5] == ["100000000000000001", 5.0, "100000000000000006"]


def test_unknown_is_said_in_the_workbook(usual: ReportFiles) -> None:
    delivered = Book(usual.xlsx).rows("totals")[8]
    assert delivered == ["delivered", "unknown", "unknown", "unknown", "tokens", 0.0, 9.0]


def test_no_reason_and_no_foreign_name_gets_out(usual: ReportFiles) -> None:
    book = Book(usual.xlsx)
    everything = b"".join([*all_bytes(usual).values(), *book.files.values()])
    assert b"CANARY" not in everything
    assert QWEN.encode() in everything


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"edition": "public"}, "choose one of billing, shared"),
        ({"month": "2026-3"}, "YYYY-MM"),
        ({"zone": "x"}, "Europe/Berlin"),
    ],
)
def test_what_cannot_be_written_is_refused(world: World, tmp_path: Path, asked: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        write_report(world, **{"month": "2026-03", "out": tmp_path, **asked})  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_without_a_period_the_report_is_about_all_days_of_the_lake(world: World, tmp_path: Path) -> None:
    files = write_report(world, out=tmp_path)
    assert files.html.name == "weighbridge-2026-02-28_2026-03-31.html"
    amounts = {row["currency"]: Decimal(row["amount"]) for row in table(files, "amounts")}
    assert amounts == {"EUR": Decimal("0.01"), "USD": Decimal("0.00606")}


def test_provenance_names_prices_in_use_and_digests_of_what_was_read(
    world: World, written: Written, usual: ReportFiles
) -> None:
    files = usual
    assert {row["model"] for row in table(files, "prices_used")} == {GPT, "gemini"}
    gemini, gpt = table(files, "price_rows")
    assert (gpt["input_uncached"], gpt["output_visible"], gpt["reasoning"], gpt["other_modalities"]) == (
        "0.4",
        "1.6",
        "",  # no price for it: unknown, which is not zero
        "1",
    )
    assert (gemini["currency"], gemini["input_uncached"]) == ("EUR", "1.25")
    read = {row["table"]: row for row in table(files, "tables_read")}
    assert {name: int(row["rows"]) for name, row in read.items()} == {
        "attempt": 8,
        "reading": 8,
        "priced_amount": 8,
        "reconciled": 18,
        "gap_cause": 5,
        "quarantine": 3,
        "gap": 1,
        "segment": 3,
        "price": 4,
        "finding": 7,
        "finding_status": 3,
    }
    world.put["reading"][0]["cache_read"] += 1
    changed = {row["table"]: row["digest"] for row in table(written(world), "tables_read")}
    assert {name for name, row in read.items() if changed[name] != row["digest"]} == {"reading"}
