"""The benchmark of the road, on a small road: its counts hold, and it fails when they do not."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROAD = Path(__file__).resolve().parents[2] / "benchmarks" / "road.py"


@pytest.mark.system
def test_the_road_is_measured_and_its_counts_hold() -> None:
    done = subprocess.run(
        [sys.executable, str(ROAD), "--attempts", "1500"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "WRONG" not in done.stdout
    for step in ("simulate", "floor", "ingest", "price", "reconcile", "report", "check", "the road"):
        assert f"\n{step}" in done.stdout


@pytest.fixture
def road(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The benchmark as a module."""
    spec = importlib.util.spec_from_file_location("road", ROAD)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "road", module)
    spec.loader.exec_module(module)
    return module


def costs(road: Any, step: str = "", cpu: float = 1.0, peak: float = 0.5, **told: int) -> dict[str, Any]:
    """A road of ten attempts, one of them lost by the agent, on which all is well but what is given for one step."""
    counts = {
        "simulate": {"lost": 1},
        "floor": {"rows": 20},
        "ingest": {"rows_in": 20, "rows_out": 20, "attempt": 9, "reading": 8},
        "price": {"priced_amount": 8},
        "check": {"expected": 3, "missing": 0, "unexpected": 0},
    }
    out = {name: road.Cost(1.0, 0.5, counts.get(name, {})) for name in road.STEPS}
    return out | ({step: road.Cost(cpu, peak, counts.get(step, {}) | told)} if step else {})


def test_a_road_on_which_all_is_well_is_not_complained_of(road: Any) -> None:
    assert list(road._wrong(costs(road), 10)) == []


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"step": "ingest", "rows_in": 19, "rows_out": 19}, "as many rows as the floor"),
        ({"step": "ingest", "rows_out": 19}, "every row was stored"),
        ({"step": "ingest", "attempt": 10}, "every attempt the agent did not lose"),
        ({"step": "price", "priced_amount": 7}, "every reading has an amount"),
        ({"step": "check", "missing": 1}, "every fault was found"),
        ({"step": "check", "unexpected": 1}, "nothing else was found"),
        ({"step": "check", "expected": 0}, "there are faults to be found"),
        ({"step": "report", "cpu": 57.0}, "60.0 CPU s stay under 60"),
        ({"step": "reconcile", "peak": 2.0}, "2.00 GiB stay under 2"),
    ],
)
def test_each_count_and_the_budget_can_fail_it(road: Any, given: dict[str, Any], said: str) -> None:
    wrong = list(road._wrong(costs(road, **given), 10))
    assert len(wrong) == 1
    assert said in wrong[0]
