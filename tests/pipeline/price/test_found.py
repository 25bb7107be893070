"""What prices show: another charge than ours, another tier than was asked for."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from weighbridge.pipeline.lake import Lake, polars_schema
from weighbridge.pipeline.price.book import PriceBook
from weighbridge.pipeline.price.frame import refresh_prices
from weighbridge.pipeline.price.price_file import read_prices
from weighbridge.schemas.lattice import CROSSED_CELLS, REPORTED_CLASSES

DAY = date(2026, 5, 1)
FILE = """
provider = "p"
currency = "USD"
source = "a list"
[[rows]]
models = ["m"]
prices = { input = "2", output = "8" }
variants = [{ when = { service_tier = "priority" }, times = "2" }]
"""


def reading(attempt: int, **own: Any) -> dict[str, Any]:
    counts = dict.fromkeys(map(str, REPORTED_CLASSES), 0) | {cell.name: 0 for cell in CROSSED_CELLS}
    key = {"attempt_hi": 0, "attempt_lo": attempt, "day": DAY, "source": "s", "child": 0, "report": 0, "revision": 0}
    named = {"provider": "p", "model": "m", "verdict": "PROVED", "ended": "complete", "segment": "a" * 64}
    totals = {"input_uncached": 1_000_000, "input_total": 1_000_000, "output_total": 0, "total": 1_000_000}
    return {**counts, **key, **named, **totals, **own}


def attempt(number: int, tier: str | None) -> dict[str, Any]:
    named = {"tenant": "unassigned", "task": "unassigned", "route": "unassigned", "status": "succeeded"}
    key = {"attempt_hi": 0, "attempt_lo": number, "day": DAY, "source": "s", "revision": 0}
    return {**key, **named, "tier_requested": tier, "arrived_at": datetime(2026, 5, 1, tzinfo=UTC)}


@pytest.fixture
def book(tmp_path: Path) -> PriceBook:
    path = tmp_path / "p.toml"
    path.write_text(FILE, encoding="utf-8")
    return PriceBook([read_prices(path)])


def found(tmp_path: Path, book: PriceBook, readings: list[dict[str, Any]], attempts: list[dict[str, Any]]) -> Any:
    lake = Lake.create(tmp_path / "lake")
    lake.append("reading", pl.DataFrame(readings, schema=polars_schema("reading")))
    lake.append("attempt", pl.DataFrame(attempts, schema=polars_schema("attempt")))
    refresh_prices(lake, book, [DAY])
    columns = ["code", "subject", "rows", "amount", "currency", "period"]
    return lake.scan("finding", columns=columns).sort("code", "subject").collect().rows()


def test_a_charge_that_differs_is_found_with_its_exact_difference(tmp_path: Path, book: PriceBook) -> None:
    dollars = {"charged_currency": "USD"}
    readings = [
        reading(1, charged=Decimal(2), **dollars),  # as it should be
        reading(2, charged=Decimal("2.01"), **dollars),
        reading(3, charged=Decimal("1.5"), **dollars),
        reading(4, charged=Decimal(9), model="other", **dollars),  # no price of ours
        reading(5),  # it says nothing
    ]
    assert found(tmp_path, book, readings, [attempt(1, None)]) == [
        ("charged_cost_differs", "provider=p; model=m", 2, Decimal("-0.49"), "USD", "2026-05")
    ]


def test_another_tier_than_was_asked_for_is_found(tmp_path: Path, book: PriceBook) -> None:
    readings = [reading(1, service_tier="default"), reading(2, service_tier="priority"), reading(3)]
    attempts = [attempt(1, "priority"), attempt(2, "priority"), attempt(3, "priority")]
    subject = "provider=p; model=m; requested=priority; served=default"
    assert found(tmp_path, book, readings, attempts) == [("service_tier_differs", subject, 1, None, None, "2026-05")]


def test_a_finding_goes_when_the_book_knows_the_price(tmp_path: Path, book: PriceBook) -> None:
    readings = [reading(1, charged=Decimal(3), charged_currency="USD")]
    assert len(found(tmp_path, book, readings, [attempt(1, None)])) == 1
    lake = Lake.open(tmp_path / "lake")
    path = tmp_path / "own.toml"
    path.write_text(FILE.replace('input = "2"', 'input = "3"'), encoding="utf-8")
    refresh_prices(lake, PriceBook([read_prices(path)]), [DAY])
    assert lake.rows("finding") == 0
