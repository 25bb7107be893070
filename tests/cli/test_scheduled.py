"""What a scheduler meets: a run that is at work, a gate that refuses, and the edition for everybody."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import date
from pathlib import Path

import polars as pl
import pytest
from tests.cli.conftest import Ran

from weighbridge.pipeline.lake import Lake
from weighbridge.pipeline.run.home import open_home
from weighbridge.pipeline.run.turn import turn
from weighbridge.pipeline.shared.shared import derive

Run = Callable[..., Ran]
DAY = date(2026, 1, 10)


@pytest.fixture
def home(weighed: Path, tmp_path: Path) -> Path:
    """A copy of an installation that was reconciled."""
    shutil.copytree(weighed, tmp_path / "home")
    return tmp_path / "home"


@pytest.mark.parametrize("verb", [("nightly",), ("retention", "apply")], ids=" ".join)
def test_a_run_that_finds_another_at_work_says_so_and_ends_with_usage(
    weighbridge: Run, home: Path, verb: tuple[str, ...]
) -> None:
    with turn(open_home(home, env={})):
        ran = weighbridge(*verb, "--config", home)
    assert ran.code == 2
    assert "is being worked on by another run" in ran.err
    assert "Try again later" in ran.err


def test_a_gate_that_refuses_is_exit_3_and_says_what_is_kept(weighbridge: Run, home: Path) -> None:
    lake = Lake.open(home / "lake")
    rows = lake.scan("reading", first=DAY, last=DAY).collect()
    lake.replace("reading", rows.with_columns(pl.col("output_total") + 1), days=[DAY])
    ran = weighbridge("nightly", "--config", home)
    assert ran.code == 3
    assert "The gate of `validate` refused this batch; nothing after it was done, and nothing is lost." in ran.out
    again = weighbridge("nightly", "--config", home, "--json")
    assert (again.code, again.json["refused"], again.json["months"], again.json["reports"]) == (3, "validate", [], {})
    assert again.json["steps"]["validate"]["broken"] > 0


def test_the_edition_for_everybody_is_written_from_what_was_released(weighbridge: Run, home: Path) -> None:
    nothing = weighbridge("report", "--edition", "shared", "--config", home)
    assert nothing.code == 2
    assert "nothing to tell in this edition yet" in nothing.err
    lake = Lake.open(home / "lake")
    derive(lake, days=lake.days("reconciled"))
    ran = weighbridge("report", "--edition", "shared", "--config", home, "--json")
    assert ran.code == 0
    (made,) = ran.json
    assert made["html"] == str(home / "reports" / "shared" / "weighbridge-shared-2026-01.html")
    unknown = weighbridge("report", "--edition", "public", "--config", home)
    assert unknown.code == 2
    assert "choose one of billing, shared" in unknown.err
