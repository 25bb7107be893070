"""Killed at any step and run again: the same end, and one receipt per deletion."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from tests.pipeline.retention import killed
from tests.pipeline.retention.world import ACME, BETA, World

ROOT = Path(__file__).resolve().parents[3]


def run(root: Path, what: str, step: int = -1) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, killed.__file__, str(root), what, str(step)],
        capture_output=True, text=True, check=False, timeout=120,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip


def end(root: Path) -> dict[str, object]:
    """Everything a finished run leaves: tables, keys, and every file beside the lake with its content."""
    world = World(root)
    beside = {
        str(path.relative_to(root)): path.read_bytes()
        for folder in (world.ledger.folder, world.spool, world.reports, world.closes)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
    return {
        "tables": world.lake.digests(),
        "keys": world.keys.names(),
        "gone": world.keys.destroyed(),
        "beside": beside,
    }


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An installation in which something of every kind is due."""
    root = tmp_path_factory.mktemp("made") / "root"
    root.mkdir()
    world = World(root)
    days = [date(2026, 1, 30) + timedelta(days=at) for at in range(4)]
    acme, beta = world.add(ACME, days), world.add(BETA, days)
    world.seal("mixed", acme[:2] + beta[:2])
    old = world.seal("old", acme[2:4] + beta[2:4], taken_in=True)
    (word,) = world.spool.glob("*.ack")
    long_ago = datetime(2026, 2, 1, tzinfo=UTC).timestamp()
    os.utime(word, (long_ago, long_ago))
    assert old.is_dir()
    for name in ("weighbridge-2014-01.html", "weighbridge-2026-01.html"):
        (world.reports / name).write_text(f"<p>{ACME}</p>")
    return root


def finished(made: Path, tmp_path: Path, what: str) -> tuple[int, dict[str, object]]:
    root = tmp_path / "undisturbed"
    shutil.copytree(made, root)
    ran = run(root, what)
    assert ran.returncode == 0, ran.stderr
    return int(ran.stdout), end(root)


def check(made: Path, tmp_path: Path, what: str, samples: int) -> None:
    steps, wanted = finished(made, tmp_path, what)
    assert steps > 60
    draw = random.Random(what)
    drawn = sorted(draw.sample(range(1, steps + 1), samples))
    for step in drawn:
        root = tmp_path / f"killed-{step}"
        shutil.copytree(made, root)
        assert run(root, what, step).returncode == -9, step
        if draw.random() < 0.5:  # killed once more, while it takes up what was left
            run(root, what, draw.randrange(1, steps))
        ran = run(root, what)
        assert ran.returncode == 0, (step, ran.stderr)
        assert end(root) == wanted, step
        if step == drawn[-1]:
            assert run(root, what).returncode == 0
            assert end(root) == wanted, "run once more it does nothing"
        shutil.rmtree(root)


@pytest.mark.system
@pytest.mark.parametrize("what", ["apply", "erase"])
def test_killed_at_a_random_step_it_comes_to_the_same_end(made: Path, tmp_path: Path, what: str) -> None:
    check(made, tmp_path, what, 3)


@pytest.mark.slow
@pytest.mark.parametrize("what", ["apply", "erase"])
def test_killed_at_many_steps_it_comes_to_the_same_end(made: Path, tmp_path: Path, what: str) -> None:
    check(made, tmp_path, what, 40)
