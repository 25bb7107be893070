"""The benchmark of validation, on few rows: its counts hold, and it fails when they do not."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

VALIDATE = Path(__file__).resolve().parents[2] / "benchmarks" / "validate.py"


@pytest.mark.system
def test_validation_is_measured_and_its_counts_hold() -> None:
    arguments = ("--attempts", "3000", "--days", "6", "--sample", "300")
    done = subprocess.run([sys.executable, str(VALIDATE), *arguments], capture_output=True, text=True, check=False)
    wrong = [line for line in done.stdout.splitlines() if "WRONG" in line]
    # How many seconds it takes is the benchmark's to judge, on a machine that has nothing else to do.
    slow = [line for line in wrong if " CPU s stay under " in line]
    assert wrong == slow
    assert (done.returncode, done.stderr) == (int(bool(slow)), "")
    assert "6 broken rows found and held" in done.stdout
    for step in ("floor", "validate", "peer"):
        assert f"\n{step}" in done.stdout


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The benchmark as a module."""
    spec = importlib.util.spec_from_file_location("benchmark_of_validation", VALIDATE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "benchmark_of_validation", module)
    spec.loader.exec_module(module)
    return module


def costs(benchmark: Any, step: str = "", cpu: float = 1.0, peak: float = 0.5, **told: float) -> dict[str, Any]:
    """Ten attempts, two of them broken, with which all is well but what is given for one step."""
    counts = {
        "make": {"rows": 10, "broken": 2},
        "floor": {"rows": 10},
        "validate": {"rows": 10, "broken": 2, "stray": 0, "held": 2, "shut": 1},
    }
    out = {name: benchmark.Cost(1.0, 0.5, counts.get(name, {})) for name in benchmark.STEPS}
    return out | ({step: benchmark.Cost(cpu, peak, counts.get(step, {}) | told)} if step else {})


def test_a_run_in_which_all_is_well_is_not_complained_of(benchmark: Any) -> None:
    assert list(benchmark._wrong(costs(benchmark), 10)) == []


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"step": "make", "rows": 9}, "as many attempts were made"),
        ({"step": "floor", "rows": 9}, "the floor read every row"),
        ({"step": "validate", "rows": 9}, "every row was looked at"),
        ({"step": "validate", "broken": 3}, "2 broken rows were found, and 3 said"),
        ({"step": "validate", "stray": 1}, "no rule is broken that was not"),
        ({"step": "validate", "held": 1}, "every broken row is in quarantine"),
        ({"step": "validate", "shut": 0}, "the gate is shut"),
        ({"step": "validate", "cpu": 10.0}, "10.00 CPU s stay under 10"),
        ({"step": "validate", "peak": 2.5}, "2.50 GiB stay under 2.5"),
    ],
)
def test_each_count_and_the_budget_can_fail_it(benchmark: Any, given: dict[str, Any], said: str) -> None:
    wrong = list(benchmark._wrong(costs(benchmark, **given), 10))
    assert len(wrong) == 1
    assert said in wrong[0]
