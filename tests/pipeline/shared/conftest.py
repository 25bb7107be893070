"""A reconciled lake with six days of simulated traffic; only to be read, or copied first."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from weighbridge.pipeline.lake import Lake
from weighbridge.pipeline.run.demo import new_home
from weighbridge.pipeline.run.night import Intake, all_months, days_of, set_prices, take_in, weigh
from weighbridge.pipeline.simulate.simulate import START, simulate


@pytest.fixture(scope="session")
def reconciled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the lake."""
    home = new_home(tmp_path_factory.mktemp("shared") / "home", 7)
    simulate(home.spool, attempts=4_000, days=6, key=home.key)
    take_in(home, [home.spool], Intake(day=START))
    lake = home.lake()
    months = all_months(lake)
    set_prices(home, days_of(lake, months))
    weigh(home, months)
    return Path(lake.root)


@pytest.fixture
def lake(reconciled: Path, tmp_path: Path) -> Lake:
    """A copy of it."""
    shutil.copytree(reconciled, tmp_path / "lake")
    return Lake.open(tmp_path / "lake")
