"""What became of findings stands on the page: what is taken over, and what is disputed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from tests.pipeline.report.conftest import World

from weighbridge.pipeline.reconcile.life.material import Materiality
from weighbridge.pipeline.report.period import period_of
from weighbridge.pipeline.report.query.life import carried_over, disputed
from weighbridge.pipeline.report.report import ReportFiles
from weighbridge.pipeline.report.view import View
from weighbridge.schemas.enumerations import Severity
from weighbridge.schemas.finding import Finding


def put(world: World, period: str, model: str, amount: str | None, severity: Severity = Severity.WARNING) -> str:
    """A finding of a month, and its id."""
    money: dict[str, Any] = {} if amount is None else {"amount": Decimal(amount), "currency": "USD"}
    subject = {"provider": "openai", "model": model}
    finding = Finding(
        code="duplicate_report", severity=severity, period=period, subject=subject, rows=1, cure="-", **money
    )
    world.put["finding"].append(finding.row())
    return finding.finding_id


def decide(world: World, finding_id: str, change: int, state: str, amount: str, reference: str | None = None) -> None:
    row = {"finding_id": finding_id, "change": change, "state": state, "changed_by": "ann", "reason": None}
    money = {"amount": Decimal(amount), "currency": "USD", "reference": reference, "expires_on": None}
    world.put["finding_status"].append({**row, **money, "changed_at": datetime(2026, 3, 9, tzinfo=UTC)})


def march(world: World, **more: Any) -> View:
    return View(world, period_of(month="2026-03", first=None, last=None, zone="UTC", held=[]), **more)


def test_what_matters_of_earlier_months_is_taken_over(bare: World) -> None:
    """A dispute with 3 outstanding, an open one, a small one; not what is closed, a notice, or of this month."""
    asked = put(bare, "2026-01", "m-1", "5")
    put(bare, "2026-02", "m-2", None)
    put(bare, "2026-02", "m-3", "0.01")
    done = put(bare, "2026-02", "m-4", "9")
    put(bare, "2026-02", "m-5", "9", Severity.NOTICE)
    put(bare, "2026-03", "m-6", "9")
    decide(bare, asked, 0, "disputed", "5", "CASE-1")
    decide(bare, asked, 1, "credited", "2")
    decide(bare, done, 0, "closed", "9")
    sheet = carried_over(march(bare, material=Materiality(amount=Decimal(1))))
    named = list(zip(*map(sheet.cells, ("first_month", "subject", "state", "outstanding")), strict=True))
    assert named == [
        ("2026-01", "provider=openai; model=m-1", "disputed", Decimal(3)),
        ("2026-02", "provider=openai; model=m-2", "open", None),
    ]
    assert len(carried_over(march(bare)).rows) == 3, "where nothing is set, nothing is small"


def test_disputes_are_added_up_by_provider_and_currency(bare: World) -> None:
    first, second = put(bare, "2026-01", "m-1", "5"), put(bare, "2026-03", "m-2", "1")
    decide(bare, first, 0, "disputed", "5")
    decide(bare, first, 1, "credited", "2")
    decide(bare, second, 0, "disputed", "0.5")
    assert disputed(march(bare)).rows == (
        ("openai", "USD", 2, Decimal("5.5"), Decimal(2), Decimal("3.5"), Decimal(0), 0),
    )


def test_the_page_shows_them(bare: World, written: Callable[..., ReportFiles]) -> None:
    decide(bare, put(bare, "2026-01", "m-1", "5"), 0, "disputed", "5", "CASE-1")
    files = written(bare)
    page = files.html.read_text(encoding="utf-8")
    assert "Taken over from earlier months" in page
    assert "Disputes and credits" in page
    assert "CASE-1" not in page
    assert files.tables["carried_over"].read_text().splitlines()[1].startswith("2026-01,warning,duplicate_report,")
