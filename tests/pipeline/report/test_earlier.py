"""A month beside earlier ones: their figures come from closes, and where there is no close that is said."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

import pytest
from tests.pipeline.report.conftest import CLAUDE, GEMINI, GPT, QWEN, World, rich
from tests.pipeline.report.test_contract import DIGITS, figures, proses

from weighbridge.pipeline.report.earlier import Closes, Earlier, Place, State
from weighbridge.pipeline.report.format import shown
from weighbridge.pipeline.report.period import period_of
from weighbridge.pipeline.report.query import earlier
from weighbridge.pipeline.report.query.totals import amounts, totals
from weighbridge.pipeline.report.report import contents, write_report
from weighbridge.pipeline.report.sheet import Kind, Sheet, Value, sheets_of
from weighbridge.pipeline.report.view import View
from weighbridge.schemas.tables import TABLES

ROOT = "f" * 64
USD, EUR = Decimal("0.00604"), Decimal("0.01")  # what March of the rich world costs


@dataclass(frozen=True)
class Told:
    """An entry of closed figures."""

    values: Mapping[str, int | Decimal | None]
    by: Mapping[str, str] = field(default_factory=dict)

    def about(self, name: str) -> str | None:
        """One label."""
        return self.by.get(name)


def cost(model: str, amount: str | None, provider: str = "openai", currency: str = "USD") -> Told:
    """What a report of a model cost in a closed month; without an amount, one without a price."""
    labels = {"provider": provider, "model": model, "status": "priced" if amount else "no_price"}
    if amount:
        labels["currency"] = currency
    return Told({"amount": None if amount is None else Decimal(amount), "reports": 1}, labels)


def month(period: str, *costs: Told) -> Earlier:
    """A closed month of two days, four attempts, three reports."""
    counts = {"input_tokens": 1000, "output_tokens": 500, "tokens": 1500, "cache_read": None, "reasoning": 0}
    sections = {
        "usage": [Told({"reports": 3, **counts})],
        "attempts": [Told({"attempts": 4})],
        "attempts_by_day": [Told({"attempts": attempts}) for attempts in (1, 3)],
        "money_by_model": costs,
    }
    return Earlier(period, State.CLOSED, ROOT, sections)


FEBRUARY = month("2026-02", cost(GPT, "0.004"), cost("gone", "1"), cost(CLAUDE, "0.0045", "anthropic"))
CLOSED: Closes = {Place.MONTH: FEBRUARY, Place.YEAR: month("2025-03", cost(GPT, "0.01"))}
OPEN: Closes = {Place.MONTH: Earlier("2026-02", State.OPEN), Place.YEAR: Earlier("2025-03", State.GONE, ROOT)}


def beside(closes: Closes, lake: World | None = None, zone: str = "UTC") -> View:
    """March 2026 of the rich world beside these months."""
    return View(lake or rich(), period_of(month="2026-03", first=None, last=None, zone=zone, held=[]), closes=closes)


def row(sheet: Sheet, **where: str) -> tuple[Value, ...]:
    """This month, then both earlier ones, each with its change and the share of it."""
    found = sheet.row(**where)
    assert found is not None
    return found[sheet.index("this_month") :]


def test_counts_stand_beside_those_of_the_closes() -> None:
    view = beside(CLOSED)
    sheet, whole = earlier.usage(view), totals(view).figure("total", measure="reported").value
    assert whole == 3135
    assert row(sheet, measure="All tokens, reported") == (3135, *[1500, 1635, Decimal("1.09")] * 2)
    assert row(sheet, measure="Days with attempts")[:3] == (5, 2, 3)
    assert row(sheet, measure="Attempts recorded")[:3] == (8, 4, 4)
    assert row(sheet, measure="Usage reports without a price")[:2] == (2, 0)


def test_what_is_unknown_in_either_month_has_no_change_and_nothing_is_no_base_of_a_share() -> None:
    sheet = earlier.usage(beside(CLOSED))
    assert row(sheet, measure="of input: read from cache")[:4] == (290, None, None, None)
    assert row(sheet, measure="of output: reasoning")[:4] == (80, 0, 80, "")


def test_money_stands_beside_that_of_the_closes() -> None:
    view = beside(CLOSED)
    sheet = earlier.money(view)
    assert amounts(view).figure("amount", currency="USD").value == USD
    february = Decimal("1.0085")
    share = ((USD - february) / february).quantize(Decimal("1e-8"))
    assert row(sheet, currency="USD") == (
        *(USD, february, USD - february, share),
        *(Decimal("0.01"), USD - Decimal("0.01"), Decimal("-0.396")),
    )
    # Neither month had anything in euros, and every report of theirs had a price: that is nothing, not unknown.
    assert row(sheet, currency="EUR") == (EUR, 0, EUR, "", 0, EUR, "")


def test_where_prices_were_missing_another_currency_is_unknown() -> None:
    sheet = earlier.money(beside({Place.MONTH: month("2026-02", cost(GPT, "0.004"), cost(QWEN, None, "vllm"))}))
    assert row(sheet, currency="EUR")[:4] == (EUR, None, None, None)
    assert row(sheet, currency="USD")[:2] == (USD, Decimal("0.004"))


def test_models_come_by_how_much_they_moved() -> None:
    sheet = earlier.models(beside(CLOSED))
    assert sheet.cells("model") == ["gone", GEMINI, GPT, CLAUDE]
    assert row(sheet, model="gone")[:4] == (0, 1, -1, -1)
    assert row(sheet, model=CLAUDE)[:3] == (Decimal("0.0045"), Decimal("0.0045"), 0)


def test_a_model_without_any_price_is_not_free() -> None:
    sheet = earlier.models(beside({Place.MONTH: month("2026-02", cost(GEMINI, None, "google"))}))
    assert row(sheet, model=GEMINI)[:3] == (EUR, None, None)


def test_a_reported_month_that_is_closed_has_the_figures_it_was_closed_with() -> None:
    sheet = earlier.usage(beside({Place.THIS: month("2026-03"), Place.MONTH: FEBRUARY}))
    assert row(sheet, measure="All tokens, reported")[:3] == (1500, 1500, 0)


def test_months_are_counted_in_utc_like_closes_whatever_the_zone() -> None:
    lake = rich()
    lake.attempt(50, "2026-03-31T23:00:00")
    lake.reading(50, "2026-03-31", 70, 30, input_uncached=70, output_visible=30)
    one, other = (earlier.usage(beside(CLOSED, lake, zone)) for zone in ("UTC", "Asia/Kolkata"))
    assert one.rows == other.rows
    assert row(one, measure="All tokens, reported")[0] == 3235


def test_a_month_that_is_not_closed_is_said_and_never_read_from_the_lake() -> None:
    lake = rich()
    lake.attempt(60, "2026-02-10T10:00:00")
    lake.reading(60, "2026-02-10", 700, 30, input_uncached=700, output_visible=30)
    view = beside(OPEN, lake)
    names = [column.name for column in earlier.usage(view).columns if column.page]
    assert names == ["measure", "this_month"]
    assert row(earlier.usage(view), measure="All tokens, reported") == (3135, *([None] * 6))
    said = ["".join(str(part) for part in prose.parts) for prose in earlier.sentences(view)]
    assert said == [
        "The month before is not closed: nothing stands beside this one.",
        "The same month a year before is closed, and its pack is not there: nothing stands beside this one.",
    ]
    states = earlier.compared(view)
    assert [(item[1], item[2]) for item in states.rows] == [("2026-02", "not_closed"), ("2025-03", "pack_gone")]
    assert "`weighbridge close 2026-02`" in str(states.rows[0][4])


def test_without_closes_earlier_months_are_not_spoken_of() -> None:
    names = {sheet.name for _, blocks in contents(beside({})) for sheet in sheets_of(blocks)}
    assert not any(name.endswith("_compared") or name == "compared_months" for name in names)


@pytest.mark.parametrize("closes", [CLOSED, OPEN], ids=["closed", "open"])
def test_what_is_said_keeps_the_promises_of_sections(closes: Closes) -> None:
    """Numbers in prose are figures, figures stand in a sheet, sheets name their tables."""
    filled = contents(beside(closes))
    sheets = {sheet.name: sheet for _, blocks in filled for sheet in sheets_of(blocks)}
    for _, blocks in filled:
        for figure in figures(blocks):
            lines = [*sheets[figure.sheet].rows, sheets[figure.sheet].total or ()]
            assert figure.value is None or any(figure.value in line for line in lines), figure
        for block in blocks:
            for prose in proses(block):
                assert not DIGITS.search("".join(part for part in prose.parts if isinstance(part, str)))
    for name in ("compared_months", "usage_compared", "amounts_compared", "models_compared"):
        assert set(sheets[name].sources) <= set(TABLES)


def test_the_page_shows_changes_with_their_sign_and_a_range_of_days_has_none(tmp_path: Path) -> None:
    page = write_report(rich(), month="2026-03", out=tmp_path, closes=CLOSED).html.read_text(encoding="utf-8")
    assert "+109.0\u202f%" in page
    assert "Beside the month before: tokens" in page
    assert "<code>weighbridge diff</code>" in page
    ranged = write_report(rich(), out=tmp_path / "all", closes=CLOSED).html.read_text(encoding="utf-8")
    assert "month before" not in ranged


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("0", "0.0"),
        ("0.1234", "+12.3"),
        ("-0.5", "\u221250.0"),
        ("0.0001", "+<\u202f0.1"),
        ("-0.0001", "\u2212<\u202f0.1"),
    ],
)
def test_a_change_has_a_sign_and_is_not_nothing_where_it_is_something(value: str, text: str) -> None:
    assert shown(Decimal(value), Kind.CHANGE) == f"{text}\u202f%"
