"""The benchmark of readings, on few records: every record is read, and it fails when one is not."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from weighbridge.pipeline import read_usage_batch

BENCHMARK = Path(__file__).resolve().parents[2] / "benchmarks" / "readings.py"


@pytest.fixture(scope="module")
def benchmark() -> Any:
    """The benchmark as a module."""
    spec = importlib.util.spec_from_file_location("benchmark_of_readings", BENCHMARK)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["benchmark_of_readings"] = module
    spec.loader.exec_module(module)
    return module


def test_readings_are_measured_and_every_record_is_read() -> None:
    arguments = ("--records", "600", "--bodies", "300")
    done = subprocess.run([sys.executable, str(BENCHMARK), *arguments], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "times as fast as the peer" in done.stdout
    for step in ("floor", "usage", "bodies", "peer"):
        assert f"\n{step}" in done.stdout


@pytest.mark.parametrize("whole", [True, False])
def test_every_made_up_record_is_read_by_its_convention(benchmark: Any, whole: bool) -> None:
    records = [json.loads(line) for line in benchmark.lines(500, whole=whole)]
    read = read_usage_batch(records)
    assert set(read["verdict"].unique()) <= {"PROVED", "ASSUMED"}
    assert read.filter(read["verdict"] == "ASSUMED")["provider"].unique().to_list() in (["anthropic"], [])
    assert len({record["provider"] for record in records}) >= 9


def test_a_record_that_is_not_read_or_too_much_memory_is_wrong(benchmark: Any) -> None:
    counts = dict.fromkeys(benchmark.STEPS, 10)
    good = {step: benchmark.Cost(1.0, 1.0, 0.1, 0.5, 10) for step in benchmark.STEPS}
    assert benchmark.told(good, counts) == []
    lost = {**good, "bodies": good["bodies"]._replace(read=9)}
    assert benchmark.told(lost, counts) == ["bodies: 9 of 10 records were read"]
    large = {**good, "usage": good["usage"]._replace(peak_gib=1.6)}
    assert benchmark.told(large, counts) == ["usage: 1.60 GiB are more than 1.5"]
