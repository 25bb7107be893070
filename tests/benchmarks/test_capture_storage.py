"""The benchmark of storage, on a tenth of its load: its budgets hold."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

STORAGE = Path(__file__).resolve().parents[2] / "benchmarks" / "capture_storage.py"


@pytest.mark.slow
def test_attempts_and_ids_take_no_more_room_than_promised() -> None:
    done = subprocess.run(
        [sys.executable, str(STORAGE), "--attempts", "6000"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count(" ok\n") == 3
