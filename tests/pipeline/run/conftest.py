"""A spool that nights begin with, and what they have to come to."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from tests.by_hand import by_great_expectations, judging_by_hand, mostly_by_hand  # noqa: F401 - fixtures

from weighbridge.pipeline.run.demo import new_home
from weighbridge.pipeline.run.home import Home, open_home
from weighbridge.pipeline.run.night import Intake, night
from weighbridge.pipeline.simulate.simulate import simulate

FIRST_DAY = date(2026, 1, 5)
INTAKE = Intake(day=FIRST_DAY)
TODAY = date(2026, 1, 12)
# The month of these days, and a time at which it may be closed.
MONTH = "2026-01"
LATER = datetime(2026, 2, 10, 6, 5, tzinfo=UTC)


@dataclass(frozen=True)
class Outcome:
    """What is left of a night: the rows of the lake, and every byte of reports, closes and acknowledgements."""

    digests: dict[str, str]
    files: dict[str, bytes]

    def other_than(self, wanted: Outcome) -> list[str]:
        """Names of the tables and files that are others than they should be, are missing, or are too many."""
        pairs = ((self.digests, wanted.digests), (self.files, wanted.files))
        return sorted(name for mine, theirs in pairs for name in {*mine, *theirs} if mine.get(name) != theirs.get(name))


def outcome(home: Home) -> Outcome:
    """What is left in this installation."""
    folders = (home.reports, home.settings.closes)
    made = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    acks = sorted(home.spool.glob("*.ack"))
    files = {str(path.relative_to(home.root)): path.read_bytes() for path in [*made, *acks]}
    return Outcome(home.lake().digests(), files)


@pytest.fixture(scope="session")
def waiting(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an installation with 300 simulated attempts of five days in its spool."""
    home = new_home(tmp_path_factory.mktemp("night") / "home", 3)
    simulate(home.spool, attempts=300, seed=3, days=5, start=FIRST_DAY, key=home.key)
    return home.root


@pytest.fixture(scope="session")
def few(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an installation with 60 simulated attempts of three days in its spool, enough for every step."""
    home = new_home(tmp_path_factory.mktemp("few") / "home", 3)
    simulate(home.spool, attempts=60, seed=3, days=3, start=FIRST_DAY, key=home.key)
    return home.root


@pytest.fixture(scope="session")
def undisturbed(waiting: Path, tmp_path_factory: pytest.TempPathFactory) -> Home:
    """The installation after a night that nothing happened to; only to be read."""
    home = copied(waiting, tmp_path_factory.mktemp("undisturbed") / "home")
    with judging_by_hand():
        night(home, [home.spool], INTAKE, today=TODAY)
    return home


def copied(root: Path, to: Path) -> Home:
    """The installation in another place."""
    shutil.copytree(root, to)
    return open_home(to, env={})


@pytest.fixture
def home(waiting: Path, tmp_path: Path) -> Home:
    """An installation whose night is still to come."""
    return copied(waiting, tmp_path / "home")
