"""Known losses as days and counts."""

from __future__ import annotations

from datetime import UTC, date, datetime

from tests.pipeline.reconcile.conftest import World

from weighbridge.pipeline.reconcile.match.coverage import losses, spans


def at(day: int, hour: int = 12) -> datetime:
    """A moment of March."""
    return datetime(2026, 3, day, hour, tzinfo=UTC)


def test_losses_that_share_a_day_are_one_and_a_loss_over_midnight_covers_both_days(world: World) -> None:
    """2nd to 3rd and 3rd to 4th touch on the 3rd; the 6th stands alone."""
    world.lost(3, day=date(2026, 3, 2), began_at=at(2, 23), ended_at=at(3, 1))
    world.lost(4, day=date(2026, 3, 3), began_at=at(3, 22), ended_at=at(4, 2))
    world.lost(1, day=date(2026, 3, 6), began_at=None, ended_at=None)
    gaps = world.frame("gap")
    assert spans(gaps.iter_rows(named=True)) == [
        (date(2026, 3, 2), date(2026, 3, 4), 7),
        (date(2026, 3, 6), date(2026, 3, 6), 1),
    ]
    assert losses(gaps).rows() == [
        (date(2026, 3, 2), 0, 7),
        (date(2026, 3, 3), 0, 7),
        (date(2026, 3, 4), 0, 7),
        (date(2026, 3, 6), 1, 1),
    ]


def test_losses_on_neighbouring_days_stay_apart(world: World) -> None:
    """What was lost on one day does not explain the reports of the next."""
    for day in (2, 3):
        world.lost(1, day=date(2026, 3, day), began_at=at(day), ended_at=at(day, 13))
    assert [lost for _, _, lost in spans(world.frame("gap").iter_rows(named=True))] == [1, 1]
