"""The sheets of bills: sums of what both sides know, and causes, the largest first."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from tests.pipeline.report.conftest import World

from weighbridge.pipeline.report.query.invoices import BILLS, REASONS, bills, reasons
from weighbridge.pipeline.report.view import View


def cell(number: int, status: str, expected: str | None, charged: str, period: str = "2026-03") -> dict[str, Any]:
    gap = None if expected is None else Decimal(charged) - Decimal(expected)
    return {
        "cell": f"{number:032x}",
        "period": period,
        "against": "invoice",
        "unit": "USD",
        "provider": "openai",
        "period_start": datetime(2026, 3, 1, tzinfo=UTC),
        "period_end": datetime(2026, 3, 2, tzinfo=UTC),
        "expected": None if expected is None else Decimal(expected),
        "charged": Decimal(charged),
        "gap": gap,
        "residual": None if gap is None else gap if status == "UNEXPLAINED" else Decimal(0),
        "status": status,
    }


def cause(number: int, code: str, amount: str, confidence: str = "probable") -> dict[str, Any]:
    about = {"cell": f"{number:032x}", "period": "2026-03", "cause": code, "unit": "USD"}
    return {**about, "amount": Decimal(amount), "confidence": confidence}


def test_bills_are_summed_where_both_sides_are_known(march: Callable[..., View]) -> None:
    world = World()
    world.put["invoice_gap"] += [
        cell(1, "MATCHED", "1.5", "1.5"),
        cell(2, "EXPLAINED", "2", "2.25"),
        cell(3, "UNEXPLAINED", "1", "0.9"),
        cell(4, "NOT_COMPARED", None, "7"),
        cell(5, "UNEXPLAINED", "1", "5", period="2026-04"),
    ]
    (row,) = bills(march(world)).rows
    told = dict(zip([column.name for column in BILLS], row, strict=True))
    assert (told["expected"], told["charged"], told["gap"]) == (Decimal("4.5"), Decimal("4.65"), Decimal("0.15"))
    assert (told["residual"], told["cells"]) == (Decimal("-0.1"), 4)
    assert [told[name] for name in ("matched", "explained", "unexplained", "provisional", "not_compared")] == [
        1,
        1,
        1,
        0,
        1,
    ]


def test_causes_are_listed_by_what_they_stand_for(march: Callable[..., View]) -> None:
    world = World()
    world.put["invoice_gap"] += [cell(1, "EXPLAINED", "1", "1.5"), cell(2, "EXPLAINED", "1", "-1")]
    world.put["invoice_cause"] += [
        cause(1, "failed_but_billed", "0.5", "ambiguous"),
        cause(2, "credit_or_discount", "-2"),
    ]
    rows = reasons(march(world)).rows
    names = [column.name for column in REASONS]
    assert [(row[names.index("cause")], row[names.index("amount")], row[names.index("ambiguous")]) for row in rows] == [
        ("credit_or_discount", Decimal(-2), 0),
        ("failed_but_billed", Decimal("0.5"), 1),
    ]


def test_without_bills_the_sheets_say_so(march: Callable[..., View]) -> None:
    assert bills(march(World())).rows == ()
    assert reasons(march(World())).rows == ()
