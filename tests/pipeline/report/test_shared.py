"""The shared edition: from histograms alone, with sums that say how far they can be off."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import date
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest
from tests.pipeline.report.conftest import World, rich
from tests.pipeline.report.test_contract import DIGITS, figures, proses

from weighbridge.pipeline.report import shared_sections
from weighbridge.pipeline.report.query import shared
from weighbridge.pipeline.report.report import SHARED, contents, page_of, write_report
from weighbridge.pipeline.report.sheet import Section, sheets_of
from weighbridge.pipeline.report.view import View
from weighbridge.schemas.discovery import declared
from weighbridge.schemas.errors import ConfigError

Viewed = Callable[..., View]
SECTIONS = declared(shared_sections, "SECTION", Section)
Bin = tuple[int | None, int | None, int]


class Alone(World):
    """A lake that is asked for nothing but what everybody may see."""

    def scan(
        self, table: str, *, first: date | None = None, last: date | None = None, columns: Sequence[str] | None = None
    ) -> pl.LazyFrame:
        """The rows of a shared table."""
        assert table == shared.TABLE, f"{table} is not for everybody"
        return super().scan(table, first=first, last=last, columns=columns)

    def days(self, table: str) -> list[date]:
        """The days of a shared table."""
        assert table == shared.TABLE, f"{table} is not for everybody"
        return super().days(table)

    def told(self, day: str, measure: str, unit: str, bins: Sequence[Bin], *cell: str | None) -> None:
        """A histogram of one cell and day."""
        names = dict(zip(("provider", "model", "task"), cell or ("openai", "gpt", "chat"), strict=True))
        self.put[shared.TABLE] += [
            {"day": date.fromisoformat(day), "measure": measure, "unit": unit, **names}
            | {"low": low, "high": high, "attempts": attempts}
            for low, high, attempts in bins
        ]


@pytest.fixture
def released() -> Alone:
    """Two cells of two days of March."""
    lake = Alone()
    others = ("openai", None, None)
    for day, cell, attempts in (("2026-03-01", (), 40), ("2026-03-01", others, 12), ("2026-03-02", (), 20)):
        lake.told(
            day,
            "arrival",
            "hour",
            [(None, None, 11), (9, 12, attempts - 11)] if attempts > 22 else [(0, 23, attempts)],
            *cell,
        )
    lake.told("2026-03-01", "input_reported", "tokens", [(None, None, 11), (15, 30, 18), (31, 63, 11)])
    lake.told("2026-03-01", "input_reported", "tokens", [(0, 0, 12)], *others)
    lake.told("2026-03-02", "input_reported", "tokens", [(15, 30, 20)])
    lake.told("2026-03-01", "output_reported", "tokens", [(None, None, 40)])
    lake.told("2026-03-01", "amount", "USD", [(1_000_000, 4_000_000, 40)])
    return lake


def test_sums_say_the_least_and_the_most_they_can_be(released: Alone, march: Viewed) -> None:
    """Middles: sqrt(16 * 31) - 1 = 21, sqrt(32 * 64) - 1 = 44, 0."""
    sheet = shared.totals(march(released))
    row = sheet.row(measure="input_reported")
    assert row is not None
    assert row[2:] == (61, 11, 15 * 38 + 31 * 11, 21 * 38 + 44 * 11, 30 * 38 + 63 * 11)
    assert sheet.row(measure="output_reported") == ("output_reported", "tokens", 0, 40, 0, 0, 0)
    assert sheet.row(measure="arrival") is None


def test_money_is_exact_in_millionths(released: Alone, march: Viewed) -> None:
    (row,) = shared.amounts(march(released)).rows
    assert row == ("USD", 40, 0, Decimal(40), Decimal(80), Decimal(160))


def test_days_and_cells_count_every_attempt_once(released: Alone, march: Viewed) -> None:
    daily = shared.daily(march(released))
    assert [row[:2] for row in daily.rows] == [(date(2026, 3, 1), 52), (date(2026, 3, 2), 20)]
    assert daily.rows[0][2:] == (21 * 18 + 44 * 11, None), "an output nobody told is unknown, not zero"
    assert shared.cells(march(released)).rows == (
        ("openai", "gpt", "chat", 60, 21 * 38 + 44 * 11, None),
        ("openai", shared.REST, shared.REST, 12, 0, None),
    )


def test_percentiles_are_the_middle_of_the_row_they_fall_into(released: Alone, march: Viewed) -> None:
    row = shared.spread(march(released)).row(measure="input_reported")
    assert row == ("input_reported", "tokens", 61, 21, 44, 44)


@pytest.mark.parametrize("name", SECTIONS)
def test_a_section_reads_shared_tables_alone_and_renders_an_empty_month(
    name: str, released: Alone, march: Viewed
) -> None:
    for lake in (released, Alone()):
        for sheet in sheets_of(SECTIONS[name].query(march(lake))):
            assert set(sheet.sources) <= {shared.TABLE}
            assert all(len(row) == len(sheet.columns) for row in sheet.rows)
            assert sheet.empty or sheet.rows
            assert re.fullmatch(r"[a-z_]{1,31}", sheet.name)


def test_rows_come_in_one_order_whatever_order_the_lake_gives_them(released: Alone, march: Viewed) -> None:
    for high in range(31, 62):  # bins that begin alike and were merged with more or less of what follows
        released.told("2026-03-03", "queue", "us", [(15, high, 11)])
    straight = [sheets_of(blocks) for _, blocks in contents(march(released), SHARED)]
    released.put[shared.TABLE].reverse()
    assert [sheets_of(blocks) for _, blocks in contents(march(released), SHARED)] == straight


def test_numbers_in_prose_stand_in_a_sheet(released: Alone, march: Viewed) -> None:
    filled = contents(march(released), SHARED)
    sheets = {sheet.name: sheet for _, blocks in filled for sheet in sheets_of(blocks)}
    seen = [figure for _, blocks in filled for figure in figures(blocks)]
    assert seen
    assert all(any(figure.value in row for row in sheets[figure.sheet].rows) for figure in seen)
    for _, blocks in filled:
        for block in blocks:
            for prose in proses(block):
                assert not DIGITS.search("".join(part for part in prose.parts if isinstance(part, str)))


def test_it_is_written_into_a_folder_of_its_own_and_says_what_it_is(released: Alone, tmp_path: Path) -> None:
    """The zone of the other edition does not move its days: those of histograms are UTC days."""
    made = write_report(released, month="2026-03", out=tmp_path, zone="Asia/Kolkata", edition=SHARED)
    assert made.html == page_of(tmp_path, "2026-03", SHARED) == tmp_path / "shared" / "weighbridge-shared-2026-03.html"
    page = made.html.read_text(encoding="utf-8")
    assert "Shared edition: for everybody" in page
    assert "Days in UTC" in page
    assert sorted(path.name for path in tmp_path.iterdir()) == ["shared"]
    again = write_report(released, month="2026-03", out=tmp_path / "again", edition=SHARED)
    assert again.html.read_bytes() == made.html.read_bytes()
    assert again.xlsx.read_bytes() == made.xlsx.read_bytes()


def test_without_a_month_it_is_about_the_days_that_were_released(released: Alone, tmp_path: Path) -> None:
    made = write_report(released, out=tmp_path, edition=SHARED)
    assert made.html.name == "weighbridge-shared-2026-03-01_2026-03-02.html"


def test_an_edition_that_is_not_there_is_refused_with_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="choose one of billing, shared"):
        write_report(rich(), month="2026-03", out=tmp_path, edition="public")
