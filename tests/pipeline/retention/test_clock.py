"""A clock that jumped ahead decides no deletion."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from tests.pipeline.retention.world import ACME, World

from weighbridge.pipeline.retention.clock import check_clock, newest_evidence
from weighbridge.schemas.errors import ConfigError

DAY = date(2026, 3, 4)
AHEAD = 7


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path)
    world.add(ACME, [DAY - timedelta(days=1), DAY])
    return world


def at(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, 5, 5, tzinfo=UTC)


def checked(world: World, day: date) -> None:
    check_clock(world.lake, world.ledger, at(day), today=day, ahead_days=AHEAD)


def test_a_clock_may_be_so_many_days_ahead_of_the_newest_data_and_no_more(world: World) -> None:
    checked(world, DAY - timedelta(days=400))
    checked(world, DAY + timedelta(days=AHEAD))
    told = "the clock says 2026-03-12 05:05 UTC .* known here is of 2026-03-04, 8 days before.* --accept-clock"
    with pytest.raises(ConfigError, match=told):
        checked(world, DAY + timedelta(days=AHEAD + 1))


def test_a_day_to_delete_by_is_held_against_the_same(world: World) -> None:
    with pytest.raises(ConfigError, match="what is due is asked for 2027-01-01"):
        check_clock(world.lake, world.ledger, at(DAY), today=date(2027, 1, 1), ahead_days=AHEAD)


def test_one_record_of_a_far_day_speaks_for_nothing(world: World) -> None:
    far = date(2031, 1, 1)
    world.add(ACME, [far])
    assert newest_evidence(world.lake, world.ledger, AHEAD) == DAY
    with pytest.raises(ConfigError, match="2026-03-04"):
        checked(world, far)


def test_data_that_comes_rarely_makes_the_guard_refuse_and_never_pass(world: World) -> None:
    """Every day stands far after the one before it, so none of them tells more than the first."""
    monthly = [DAY + timedelta(days=30 * number) for number in (1, 2)]
    world.add(ACME, monthly)
    assert newest_evidence(world.lake, world.ledger, AHEAD) == DAY
    assert newest_evidence(world.lake, world.ledger, 31) == monthly[-1]
    with pytest.raises(ConfigError, match="days more than 7 after all others do not count"):
        checked(world, monthly[-1])


def test_runs_carry_the_clock_on_where_nothing_comes_any_more(world: World) -> None:
    for days in range(AHEAD, 60, AHEAD):
        checked(world, DAY + timedelta(days=days))
        world.ledger.ran(at(DAY + timedelta(days=days)))
    late = DAY + timedelta(days=200)
    with pytest.raises(ConfigError, match="nothing was deleted"):
        checked(world, late)
    world.ledger.ran(at(late))  # somebody vouched for that clock
    checked(world, late + timedelta(days=1))


def test_an_empty_lake_knows_nothing_of_time(tmp_path: Path) -> None:
    world = World(tmp_path)
    checked(world, date(2199, 1, 1))


def test_a_damaged_note_of_the_last_run_is_no_time(world: World) -> None:
    world.ledger.ran(at(DAY))
    (world.ledger.folder / "clock.json").write_text('{"at": 5}')
    with pytest.raises(ConfigError, match=r"clock\.json is not what retention wrote there"):
        checked(world, DAY)
