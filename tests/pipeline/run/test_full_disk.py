"""A disk that is full for real, a little later each time: in the end there is what a roomy disk would have.

The disk is a tmpfs, which only root may mount; elsewhere these tests are skipped and say so.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import polars as pl
import pytest
import typer
from polars.testing import assert_frame_equal
from tests.pipeline.run.conftest import INTAKE, LATER, MONTH, TODAY, Outcome, copied, outcome

from weighbridge.cli.exits import USAGE, guarded
from weighbridge.pipeline.close.verify import verify_month
from weighbridge.pipeline.lake import LakeFullError
from weighbridge.pipeline.run import month
from weighbridge.pipeline.run.failure import DiskFullError
from weighbridge.pipeline.run.home import Home
from weighbridge.pipeline.run.month import monthly
from weighbridge.pipeline.run.night import night
from weighbridge.pipeline.run.steps import ADJUST, PRICE, READ, RECONCILE

pytestmark = pytest.mark.system

ROOMY = 256 * 2**20
# So much of what the work takes in the end is there, one after the other.
SHARES = (0.02, 0.3, 0.55, 0.8)
# Written by days as wholes: each is as it was, or as it shall be.
BY_DAY = ("priced_amount", "reconciled", "gap_cause", "baseline", "shared_histogram")


@dataclass(frozen=True)
class Disk:
    """A small file system."""

    folder: Path

    def resize(self, size: int) -> None:
        """Let it hold so many bytes; what it holds already has to fit."""
        subprocess.run(["mount", "-o", f"remount,size={size}", str(self.folder)], check=True, capture_output=True)

    @property
    def used(self) -> int:
        """Bytes that are taken."""
        told = os.statvfs(self.folder)
        return (told.f_blocks - told.f_bfree) * told.f_frsize


@contextmanager
def disk(folder: Path) -> Iterator[Disk]:
    """A tmpfs at a folder, for as long as the block runs."""
    folder.mkdir()
    if os.geteuid() != 0:
        pytest.skip("only root may mount a small file system; run this test as root, in a container if need be")
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={ROOMY}", "tmpfs", str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip(f"this system mounts no tmpfs ({mounted.stderr.strip()}); a container needs CAP_SYS_ADMIN for it")
    try:
        yield Disk(folder)
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True, capture_output=True)


def a_night(home: Home) -> None:
    night(home, [home.spool], INTAKE, today=TODAY)


def a_close(home: Home) -> None:
    done = monthly(home, MONTH, by="test", now=LATER)
    assert done.close is not None
    assert done.close.closed, done.close.refused


@dataclass(frozen=True)
class Whole:
    """Work on a roomy disk: what there was before it, what it leaves, and how much room that takes, in bytes."""

    before: Path
    left: Outcome
    days: dict[tuple[str, date], pl.DataFrame]
    more: int


def days_of(home: Home) -> dict[tuple[str, date], pl.DataFrame]:
    lake = home.lake()
    found = {table: lake.scan(table).collect().partition_by("day", as_dict=True) for table in BY_DAY}
    return {(table, day): rows for table, of_table in found.items() for (day,), rows in of_table.items()}


@pytest.fixture(scope="module")
def wholes(few: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Whole]]:
    """A night, and the close of its month after it; that writes rows and packs, validation and pages are a night's."""
    root, found = tmp_path_factory.mktemp("roomy"), {}
    with pytest.MonkeyPatch.context() as patch, disk(root / "disk") as roomy:
        patch.setattr(month, "ANEW", (READ, PRICE, RECONCILE, ADJUST))
        home = copied(few, roomy.folder / "home")
        before = few
        for name, work in (("night", a_night), ("close", a_close)):
            used = roomy.used
            work(home)
            found[name] = Whole(before, outcome(home), days_of(home), roomy.used - used)
            before = copied(home.root, root / name).root
        yield found


@pytest.mark.parametrize(("name", "work"), [("night", a_night), ("close", a_close)], ids=["night", "close"])
def test_work_on_a_disk_that_fills_up_is_finished_once_there_is_room(
    wholes: dict[str, Whole],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
    work: Callable[[Home], None],
) -> None:
    wanted = wholes[name]
    with disk(tmp_path / "disk") as small:
        home = copied(wanted.before, small.folder / "home")
        before, begun = days_of(home), small.used
        for share in SHARES:
            small.resize(begun + int(share * wanted.more))
            with pytest.raises((DiskFullError, LakeFullError)) as full:
                work(home)
            # What the command line makes of it.
            with pytest.raises(typer.Exit) as ended, guarded(lambda: False):
                raise full.value
            assert ended.value.exit_code == USAGE
            told = capsys.readouterr().err
            assert "disk is full" in told
            assert "Make room, then run it again" in told
            small.resize(ROOMY)
            half_written(before, days_of(home), wanted.days)
        work(home)
        assert outcome(home).other_than(wanted.left) == []
        if name == "close":
            assert verify_month(home.lake(), home.settings.closes, MONTH).sound


def half_written(
    before: dict[tuple[str, date], pl.DataFrame],
    now: dict[tuple[str, date], pl.DataFrame],
    wanted: dict[tuple[str, date], pl.DataFrame],
) -> None:
    """Fail where a day is neither as it was nor as it shall be."""
    for place, rows in now.items():
        if place not in before or not rows.equals(before[place]):
            assert_frame_equal(rows, wanted[place], check_row_order=False)
    assert set(before) <= set(now)
