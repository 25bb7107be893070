"""Folders for what does not fit into memory do not outlive whoever made them for long."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from weighbridge.pipeline.lake.scratch import scratch

KILLED = """
import os, signal
from weighbridge.pipeline.lake.scratch import scratch
with scratch("test") as folder:
    (folder / "run").write_bytes(b"1")
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place for such folders that nobody else has."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_a_folder_goes_with_its_block(place: Path) -> None:
    with scratch("test") as folder:
        (folder / "run").write_bytes(b"1")
        assert [folder] == list(place.iterdir())
    assert not list(place.iterdir())


def test_the_next_one_removes_what_a_killed_process_left_and_nothing_else(place: Path) -> None:
    (place / "weighbridge-other-1").mkdir()
    (place / "weighbridge-test-young").mkdir()  # made a moment ago, about to be locked
    (place / "weighbridge-test-old").mkdir()
    os.utime(place / "weighbridge-test-old", (0, 0))
    died = subprocess.run([sys.executable, "-c", KILLED], check=False)
    assert died.returncode == -signal.SIGKILL
    assert len(list(place.glob("weighbridge-test-*/run"))) == 1
    with scratch("test") as mine, scratch("test") as other:
        left = {folder.name for folder in place.iterdir()}
        assert left == {"weighbridge-other-1", "weighbridge-test-young", mine.name, other.name}
