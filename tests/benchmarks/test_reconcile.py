"""The benchmark of reconciling, on a small lake: all its ways give the groups of the hand-written query."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).resolve().parents[2] / "benchmarks" / "reconcile.py"


@pytest.mark.system
def test_every_way_gives_the_groups_of_the_query_by_hand(tmp_path: Path) -> None:
    """How much each takes is not asked of so few rows, nor of a machine that is shared."""
    command = [sys.executable, str(BENCHMARK), "--attempts", "20000", "--days", "3", "--repeats", "1"]
    told = subprocess.run([*command, "--folder", str(tmp_path / "b")], capture_output=True, text=True, check=False)
    lines = told.stdout.splitlines()
    for way in ("sorted", "loose", "duckdb"):
        assert f"ok    {way}: 0 groups differ from the query by hand" in lines
        assert f"ok    {way}: every attempt is counted" in lines
    assert any(line.startswith("WRONG") for line in lines) == (told.returncode == 1)
