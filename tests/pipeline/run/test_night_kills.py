"""Nights, closes and retention are killed at random moments: what comes last leaves what undisturbed work leaves.

`pytest -m "slow or not slow" tests/pipeline/run/test_night_kills.py` does all 200 kills.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.conftest import ROOT
from tests.pipeline.run.conftest import MONTH, Outcome, copied, outcome

from weighbridge.pipeline.close.verify import verify_month
from weighbridge.pipeline.run.home import open_home

PARENT = Path(__file__).with_name("begun.py")
KILLS = 10
QUALITY = "reports/data-quality.html"
# Seeds by default, and in full, for nights and for closes: 20 kills, and 200.
SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 10))]
# How far into its work a run may come before it is killed: a night goes on where the last one stopped, a close begins
# with the same days each time.
REACH = {"night": 0.5, "close": 1.0}


@dataclass
class Parent:
    """The process whose children do the work."""

    process: subprocess.Popen[str]

    def says(self) -> str:
        """The next line of what it answers."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def asked(self, line: str) -> int:
        """What it answers to a line."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()
        return int(self.says())

    def ended(self, what: str, root: Path, after_s: float | None = None) -> int:
        """The exit code of a child that does the work, killed after a while where one is given: then it is negative."""
        child = self.asked(f"{what} {root}")
        if after_s is not None:
            time.sleep(after_s)
            os.kill(child, signal.SIGKILL)
        return self.asked("")


@dataclass(frozen=True)
class Whole:
    """A piece of work that nothing happened to.

    Attributes:
        before: the installation before it; only to be copied.
        left: what it leaves.
        seconds: how long it takes on this machine.
    """

    before: Path
    left: Outcome
    seconds: float


@pytest.fixture(scope="module")
def parent() -> Iterator[Parent]:
    """The parent, with everything loaded."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    process = subprocess.Popen(
        [sys.executable, str(PARENT)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, text=True
    )
    made = Parent(process)
    assert made.says() == "ready"
    with process:
        yield made
        assert process.stdin is not None
        process.stdin.close()


@pytest.fixture(scope="module")
def whole(parent: Parent, few: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Whole]:
    """A night, and the close of its month after it."""
    found, before = {}, few
    for what in ("night", "close"):
        home = copied(before, tmp_path_factory.mktemp(what) / "home")
        began = time.monotonic()
        assert parent.ended(what, home.root) == 0
        found[what] = Whole(before, outcome(home), time.monotonic() - began)
        before = home.root
    assert {"reconciled", "finding", "shared_histogram", "baseline"} <= set(found["night"].left.digests)
    assert any(name.startswith("closes/2026-01/") for name in found["close"].left.files)
    return found


@pytest.mark.system
@pytest.mark.parametrize("what", ["night", "close"])
@pytest.mark.parametrize("seed", SEEDS)
def test_work_that_is_killed_leaves_in_the_end_what_undisturbed_work_leaves(
    parent: Parent, whole: dict[str, Whole], tmp_path: Path, what: str, seed: int
) -> None:
    draw, wanted = random.Random(f"{what} {seed}"), whole[what]
    root, kills = copied(wanted.before, tmp_path / "home").root, 0
    while kills < KILLS:
        code = parent.ended(what, root, draw.uniform(0, REACH[what] * wanted.seconds))
        assert code in {0, -signal.SIGKILL}
        kills += code != 0
        if code == 0:  # it got to its end before that: begin again, so that a kill has something to interrupt
            assert outcome(open_home(root, env={})).other_than(wanted.left) == []
            shutil.rmtree(root)
            copied(wanted.before, root)
    assert parent.ended(what, root) == 0
    home = open_home(root, env={})
    assert outcome(home).other_than(wanted.left) == []
    if what == "close":
        assert verify_month(home.lake(), home.settings.closes, MONTH).sound


@pytest.fixture(scope="module")
def forgotten(parent: Parent, few: Path, tmp_path_factory: pytest.TempPathFactory) -> Whole:
    """Retention that takes rows of a month that is over, with the night before it and the one after it."""
    before = copied(few, tmp_path_factory.mktemp("forgotten") / "home")
    for what in ("night", "later"):
        assert parent.ended(what, before.root) == 0
    home = copied(before.root, tmp_path_factory.mktemp("forgotten") / "home")
    began = time.monotonic()
    assert parent.ended("retention+night", home.root) == 0
    seconds = time.monotonic() - began
    left, had = outcome(home), outcome(before)
    assert 0 < home.lake().rows("attempt") < before.lake().rows("attempt")
    assert {name for name in left.files if left.files[name] != had.files[name]} <= {QUALITY}, "pages stay as they are"
    return Whole(before.root, left, seconds)


@pytest.mark.system
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 10))])
def test_retention_that_is_killed_makes_no_night_do_anything_anew(
    parent: Parent, forgotten: Whole, tmp_path: Path, seed: int
) -> None:
    """Killed anywhere in retention or the night after it; then comes a night, before retention comes to its end."""
    draw, kills = random.Random(f"retention {seed}"), 0
    root = copied(forgotten.before, tmp_path / "home").root
    while kills < KILLS // 2:
        kills += parent.ended("retention+night", root, draw.uniform(0, 0.8 * forgotten.seconds)) != 0
        assert parent.ended("later", root) == 0
    assert parent.ended("retention+night", root) == 0
    found = outcome(open_home(root, env={}))
    # The page of validation names the days it looked at, and a night that was killed in it looks at them again.
    assert [name for name in found.other_than(forgotten.left) if name != QUALITY] == []
