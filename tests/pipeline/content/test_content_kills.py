"""Recompressing is killed anywhere: every id stays readable, once, and the next run finishes what was begun."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from datetime import date, timedelta
from pathlib import Path

import pytest
from tests.pipeline.content.test_content import DAY, OTHER, TENANT, Stored, held, store

from weighbridge.pipeline.content import recompress as packing
from weighbridge.pipeline.content.recompress import crowded, recompress
from weighbridge.pipeline.lake import Lake
from weighbridge.schemas.block import seal_block
from weighbridge.schemas.keys import KeyFolder

DAYS = [DAY + timedelta(days=offset) for offset in range(6)]
WORK = """
import sys
sys.path[:0] = {paths!r}
from datetime import date
from pathlib import Path
from weighbridge.pipeline.content.recompress import recompress
from weighbridge.pipeline.lake import Lake
from weighbridge.schemas.keys import KeyFolder
here = Path(sys.argv[1])
lake = Lake.open(here / "lake")
print("ready", flush=True)
recompress(lake, KeyFolder(here / "keys"), lake.days("token_run"))
lake.compact("token_run", keep_hours=0)
"""


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake.create(tmp_path / "lake")


@pytest.fixture
def keys(tmp_path: Path) -> KeyFolder:
    return KeyFolder(tmp_path / "keys")


def fill(lake: Lake, keys: KeyFolder, days: list[date]) -> dict[tuple[int, str], list[int]]:
    """Four small blocks a day of two tenants; attempt and stream -> ids."""
    draw, number = random.Random(5), 0
    every: dict[tuple[int, str], list[int]] = {}
    for day in days:
        for tenant in (TENANT, OTHER) * 2:
            runs: list[Stored] = []
            for _ in range(5):
                number += 1
                runs.append((number, "output", [draw.randrange(50_000) for _ in range(400)]))
            store(lake, keys, runs, tenant, day)
            every |= {(attempt, stream): ids for attempt, stream, ids in runs}
    return every


def packed(lake: Lake) -> int:
    """How many blocks there are."""
    return int(lake.scan("token_run").collect()["block"].n_unique())


@pytest.mark.parametrize("kill", [0, 1, 2, *(pytest.param(kill, marks=pytest.mark.slow) for kill in range(3, 20))])
def test_a_kill_at_a_random_moment_loses_no_id(lake: Lake, keys: KeyFolder, tmp_path: Path, kill: int) -> None:
    every = fill(lake, keys, DAYS)
    child = subprocess.Popen(
        [sys.executable, "-c", WORK.format(paths=sys.path), str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    time.sleep(random.Random(kill).uniform(0.0, 0.8))
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()
    assert held(lake, keys) == every
    recompress(lake, keys, DAYS)
    lake.compact("token_run", keep_hours=0)
    assert held(lake, keys) == every
    assert packed(lake) == 2 * len(DAYS)
    files = list((Path(lake.root) / "content" / "token_run").rglob("*.parquet"))
    assert len(files) == len(DAYS), "what was begun and not committed is gone"


class CutOff(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("step", ["sealed", "written", "committed"])
def test_cut_off_at_every_step_of_the_second_day(
    lake: Lake, keys: KeyFolder, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Before anything is written, with files that no version names, and just after the commit."""
    days = DAYS[:3]
    every = fill(lake, keys, days)
    calls = 0
    replace, commit = Lake.replace, Lake._commit

    def cut(*arguments: object, **named: object) -> object:
        nonlocal calls
        calls += 1
        if step == "sealed":
            if calls == 4:
                raise CutOff
            return seal_block(*arguments, **named)  # type: ignore[arg-type]
        if step == "written":
            if calls == 2:
                raise CutOff
            return commit(*arguments, **named)  # type: ignore[arg-type]
        replace(*arguments, **named)  # type: ignore[arg-type]
        if calls == 2:
            raise CutOff
        return None

    with monkeypatch.context() as patched:
        target, name = {
            "sealed": (packing, "seal_block"),
            "written": (Lake, "_commit"),
            "committed": (Lake, "replace"),
        }[step]
        patched.setattr(target, name, cut)
        with pytest.raises(CutOff):
            recompress(lake, keys, days)
    assert held(lake, keys) == every
    left = {"sealed": days[1:], "written": days[1:], "committed": days[2:]}[step]
    assert crowded(lake) == left
    assert recompress(lake, keys, crowded(lake)).days == left
    assert held(lake, keys) == every
    assert recompress(lake, keys, days).days == []
