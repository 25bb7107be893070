"""The benchmark of comparisons, on few and short answers: its figures hold, and it says so where they do not."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

FILE = Path(__file__).resolve().parents[2] / "benchmarks" / "compare.py"


@pytest.mark.system
def test_the_benchmark_runs_and_nothing_is_wrong() -> None:
    told = ["speed", "peers", "--pairs", "60", "--ids", "120"]
    done = subprocess.run([sys.executable, str(FILE), *told], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "WRONG" not in done.stdout
    assert "60 pairs of 120 ids" in done.stdout
    assert "difflib 0.5000" in done.stdout


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The benchmark as a module."""
    spec = importlib.util.spec_from_file_location("compare_benchmark", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "compare_benchmark", module)
    spec.loader.exec_module(module)
    return module


def test_a_comparison_that_takes_too_long_is_wrong(
    benchmark: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert benchmark.speed(8, 20, 1)
    monkeypatch.setattr(benchmark, "LIMIT_S", -1.0)
    assert not benchmark.speed(8, 20, 1)
    assert capsys.readouterr().out.count("WRONG") == 1
