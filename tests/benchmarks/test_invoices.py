"""The benchmark of bills weighs what it says: each model is billed in its way, and that way is what comes out."""

from __future__ import annotations

import importlib.util
from datetime import UTC, datetime
from pathlib import Path

import pytest

from weighbridge.pipeline.invoice.reconcile import Books, months_compared
from weighbridge.pipeline.lake import Lake
from weighbridge.pipeline.price.book import PriceBook
from weighbridge.pipeline.price.price_file import read_prices

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "invoices.py"
CAUSES = {
    "m0": set(),
    "m1": {"failed_but_billed"},
    "m2": {"cache_lifetime"},
    "m3": {"service_tier"},
    "m4": {"price_date"},
    "m5": {"rounding"},
    "m6": {"unobserved_traffic"},
    "m7": set(),
}


@pytest.mark.system
def test_every_way_of_the_benchmark_comes_out_by_name(tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("invoices", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    script.make(tmp_path, 6000, 8, 3, every=False)
    books = Books({}, PriceBook([read_prices(tmp_path / "prices.toml")]))
    (result,) = months_compared(Lake.open(tmp_path / "lake"), books, datetime(2026, 8, 1, tzinfo=UTC))
    found: dict[str, set[str]] = {name: set() for name in CAUSES}
    for cell in result.cells:
        found[str(cell.key.model)] |= {share.cause for share in cell.explained.shares} if cell.explained else set()
        assert (str(cell.status) == "UNEXPLAINED") is (cell.key.model == "m7"), cell.key
    assert found == {**CAUSES, "m4": set()}
