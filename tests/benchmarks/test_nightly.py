"""The benchmark of the night, on a small one: its counts hold, and a night that is off fails it."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

NIGHTLY = Path(__file__).resolve().parents[2] / "benchmarks" / "nightly.py"


@pytest.mark.system
def test_the_night_is_measured_step_by_step() -> None:
    command = [sys.executable, str(NIGHTLY), "--attempts", "600", "--days", "3"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    for step in ("take in", "price", "reconcile", "baseline", "share", "report", "the night", "a second one", "floor"):
        assert f"\n{step} " in done.stdout


@pytest.fixture
def nightly(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The benchmark as a module."""
    spec = importlib.util.spec_from_file_location("nightly", NIGHTLY)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "nightly", module)
    spec.loader.exec_module(module)
    return module


COUNTS = {"attempt": 9, "reading": 8, "reconciled": 20, "shared_histogram": 5, "finding": 3}
NIGHT = {"refused": None, "stored": 20, "reports": 1, **COUNTS}


def wrong(nightly: Any, part: str = "", cpu: float = 1.0, idle: dict[str, Any] | None = None, **told: Any) -> list[str]:
    """What a night is said to have wrong on which all is well but what is given for one part."""
    counts: dict[str, dict[str, Any]] = {
        "simulate": {},
        "floor": {"rows": 20},
        "night": NIGHT,
        "check": {"expected": 3, "missing": 0, "unexpected": 0},
    }
    costs = {name: nightly.Cost(1.0, 0.5, of_part) for name, of_part in counts.items()}
    if part:
        costs[part] = replace(costs[part], cpu_s=cpu, told=costs[part].told | told)
    second = nightly.Cost(1.0, 0.5, {**NIGHT, "stored": 0, "reports": 0, **(idle or {})})
    return [fact for holds, fact in nightly._facts(costs, second) if not holds]


def test_a_night_on_which_all_is_well_is_not_complained_of(nightly: Any) -> None:
    assert wrong(nightly) == []


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"part": "night", "refused": "validate"}, "no gate refuses"),
        ({"part": "night", "stored": 19}, "as many rows were stored"),
        ({"part": "night", "cpu": 120.0}, "120.0 CPU s stay under 120"),
        ({"part": "check", "missing": 1}, "every fault was found"),
        ({"part": "check", "unexpected": 1}, "nothing else was found"),
        ({"part": "check", "expected": 0}, "faults to be found"),
        ({"idle": {"reports": 1}}, "a second night has nothing to do"),
        ({"idle": {"finding": 4}}, "a second night has nothing to do"),
    ],
)
def test_each_count_and_the_budget_can_fail_it(nightly: Any, given: dict[str, Any], said: str) -> None:
    (only,) = wrong(nightly, **given)
    assert said in only
