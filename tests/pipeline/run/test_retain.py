"""Retention on an installation: what goes says nothing new about what stays."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.pipeline.run.conftest import FIRST_DAY, INTAKE, TODAY, copied, outcome

from weighbridge.pipeline.run.home import Home
from weighbridge.pipeline.run.night import night
from weighbridge.pipeline.run.retain import planned, retain
from weighbridge.pipeline.run.steps import NIGHT
from weighbridge.pipeline.run.turn import turn
from weighbridge.schemas.errors import ConfigError, LakeBusyError

NOW = datetime(2026, 1, 12, 5, 5, tzinfo=UTC)

pytestmark = pytest.mark.xdist_group("nights")


def kept(home: Home, **days: int) -> Home:
    """The installation with other times."""
    return replace(home, settings=replace(home.settings, retention={**home.settings.retention, **days}))


def test_where_nothing_is_due_nothing_is_changed(undisturbed: Home, tmp_path: Path) -> None:
    home = copied(undisturbed.root, tmp_path / "again")
    before = outcome(home)
    done = retain(home, today=TODAY, now=NOW, by="test")
    assert (done.plan.rows, done.applied.receipts) == (0, ())
    assert outcome(home) == before


def test_days_that_go_make_no_other_day_due(undisturbed: Home, tmp_path: Path) -> None:
    """The first two days are past their time; the month they lie in is not weighed anew without them."""
    home = kept(copied(undisturbed.root, tmp_path / "again"), billing=(TODAY - FIRST_DAY).days - 2)
    page = (home.reports / "weighbridge-2026-01.html").read_bytes()
    done = retain(home, today=TODAY, now=NOW, by="test")
    assert done.applied.receipts
    lake = home.lake()
    assert lake.days("attempt") == [FIRST_DAY + timedelta(days=number) for number in range(2, 5)]
    assert [step.due(home, TODAY) for step in NIGHT] == [{}] * len(NIGHT)
    idle = night(home, [], INTAKE, today=TODAY)
    assert (idle.days, idle.months, idle.reports) == ((), (), {})
    assert (home.reports / "weighbridge-2026-01.html").read_bytes() == page
    assert retain(home, today=TODAY, now=NOW, by="test").applied.receipts == ()


def test_a_page_that_went_because_its_time_was_over_is_not_made_again(undisturbed: Home, tmp_path: Path) -> None:
    home = kept(copied(undisturbed.root, tmp_path / "again"), reports=0)
    today = TODAY.replace(month=2)
    assert {due.table for due in planned(home, today).due} == {"reports", "shared_histogram"}
    retain(home, today=today, now=NOW, by="test", accept_clock=True)
    assert not list(home.reports.glob("weighbridge-*"))
    assert not list((home.reports / "shared").glob("weighbridge-*"))
    assert night(home, [], INTAKE, today=TODAY).reports == {}
    assert not list(home.reports.glob("weighbridge-*"))


def test_a_run_at_work_is_not_disturbed(undisturbed: Home, tmp_path: Path) -> None:
    home = copied(undisturbed.root, tmp_path / "again")
    with turn(home), pytest.raises(LakeBusyError, match="another run"):
        retain(home, today=TODAY, now=NOW, by="test")


def test_a_clock_that_jumped_ahead_deletes_nothing_unless_somebody_vouches_for_it(
    undisturbed: Home, tmp_path: Path
) -> None:
    home = kept(copied(undisturbed.root, tmp_path / "again"), billing=100)
    later = NOW + timedelta(days=300)
    before = outcome(home)
    with pytest.raises(ConfigError, match="the newest thing known here is of 2026-01-09, 303 days before"):
        retain(home, today=later.date(), now=later, by="test")
    assert outcome(home) == before
    assert retain(home, today=later.date(), now=later, by="test", accept_clock=True).applied.receipts
    after = later + timedelta(days=1)
    retain(home, today=after.date(), now=after, by="test")
