"""What a killed run left half-written goes when the next one begins, and nothing else does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from weighbridge.pipeline.run.demo import new_home
from weighbridge.pipeline.run.home import Home
from weighbridge.pipeline.run.turn import turn


@pytest.fixture
def ended() -> int:
    """The number of a process that is no more."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def files(home: Home) -> set[str]:
    """Names of what lies in the folders of pages and notes."""
    return {path.name for folder in (home.reports, home.state) for path in folder.rglob("*") if path.is_file()}


def test_drafts_of_processes_that_are_no_more_are_deleted(tmp_path: Path, ended: int) -> None:
    home = new_home(tmp_path / "home", 1)
    kept = {
        f".weighbridge-2026-01.html.{os.getpid()}.tmp",  # of a process that may still be writing
        ".weighbridge-2026-01.html.1.tmp",  # of another user's
        f"weighbridge-2026-01.html.{ended}.tmp",  # not hidden, so not of ours
        f".notes.{ended}.txt",
        "weighbridge-2026-01.html",
    }
    drafts = {f".weighbridge-2026-01.html.{ended}.tmp", f".data-quality.html.{ended}.draft", ".page.4194999999.tmp"}
    (home.reports / "shared").mkdir()
    home.state.mkdir()
    for name in kept | drafts:
        (home.reports / "shared" / name).write_text("half of a page")
    (home.state / f".stamps.json.{ended}.tmp").write_text("{")
    with turn(home):
        assert files(home) == {*kept, "turn.lock"}


def test_a_folder_that_cannot_be_read_stops_no_run(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", 1)
    home.reports.rmdir()
    with turn(home):
        assert files(home) == {"turn.lock"}
