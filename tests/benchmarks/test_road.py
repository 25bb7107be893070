"""The benchmark of the road, on a small road: its counts hold, and it fails when they do not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROAD = Path(__file__).resolve().parents[2] / "benchmarks" / "road.py"


@pytest.mark.slow
def test_the_road_is_measured_and_its_counts_hold() -> None:
    done = subprocess.run(
        [sys.executable, str(ROAD), "--attempts", "1500"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "WRONG" not in done.stdout
    for step in ("simulate", "floor", "ingest", "price", "reconcile", "report", "check", "the road"):
        assert f"\n{step}" in done.stdout
