"""Nights are killed at random moments: whoever comes last leaves what a night leaves that nothing happened to."""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.pipeline.run.conftest import copied, outcome

from weighbridge.pipeline.run.home import Home, open_home

KILLS = 4
# Seeds by default, and in full: 20 kills, and 200.
SEEDS = [*range(5), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(5, 50))]
WORK = """
import sys
from datetime import date
from pathlib import Path
from weighbridge.pipeline.run.home import open_home
from weighbridge.pipeline.run.night import Intake, night
home = open_home(Path(sys.argv[1]), env={})
print("ready", flush=True)
night(home, [home.spool], Intake(day=date(2026, 1, 5)), today=date(2026, 1, 12))
"""


def begun(root: Path) -> subprocess.Popen[bytes]:
    """A process that is about to begin a night."""
    process = subprocess.Popen([sys.executable, "-c", WORK, str(root)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    process.stdout.close()
    return process


@pytest.fixture(scope="module")
def seconds(waiting: Path, tmp_path_factory: pytest.TempPathFactory) -> float:
    """How long a night takes on this machine."""
    root = copied(waiting, tmp_path_factory.mktemp("timed") / "home").root
    process = begun(root)
    began = time.monotonic()
    assert process.wait(120) == 0
    return time.monotonic() - began


@pytest.mark.parametrize("seed", SEEDS)
def test_nights_that_are_killed_leave_what_an_undisturbed_one_leaves(
    waiting: Path, undisturbed: Home, tmp_path: Path, seconds: float, seed: int
) -> None:
    draw = random.Random(seed)
    root, kills = copied(waiting, tmp_path / "home").root, 0
    while kills < KILLS:
        process = begun(root)
        try:
            process.wait(draw.uniform(0, 0.8 * seconds))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            kills += process.wait() == -signal.SIGKILL
        else:  # it got to its end before that: begin again, so that a kill has something to interrupt
            assert process.returncode == 0
            assert outcome(open_home(root, env={})) == outcome(undisturbed)
            shutil.rmtree(root)
            copied(waiting, root)
    assert begun(root).wait(120) == 0
    assert outcome(open_home(root, env={})) == outcome(undisturbed)
