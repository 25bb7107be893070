"""What may still come is provisional, and what became of it is told."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from tests.pipeline.reconcile.conftest import DAY, World, weighed

from weighbridge.pipeline.reconcile.match.lateness import Lateness, settled
from weighbridge.pipeline.reconcile.reconcile import reconcile
from weighbridge.pipeline.reconcile.transition import Transition

TWO, THREE = DAY + timedelta(days=2), DAY + timedelta(days=3)


def test_an_attempt_waits_for_its_report_as_long_as_one_may_come(world: World) -> None:
    """Of 2 March, two days late at most: on the 4th it is provisional, on the 5th its usage is missing."""
    world.attempt(1, input_computed=1200, output_computed=30)
    early = weighed(world, as_of=TWO)
    assert early.outcome(1) == (1200, None, None, None, "PROVISIONAL")
    assert early.row(1)["open_until"] == TWO
    assert early.row(1)["confidence"] is None
    assert early.causes(1) == {}
    assert early.codes == ["provisional_amounts"]
    found = early.finding("provisional_amounts")
    assert (found.rows, found.expected, found.observed, found.amount) == (1, 1230, None, None)
    final = weighed(world, as_of=THREE)
    assert final.outcome(1) == (1200, None, -1200, 0, "EXPLAINED")
    assert final.causes(1) == {"usage_missing": -1200}
    assert final.row(1)["open_until"] is None


def test_nothing_is_provisional_where_nobody_says_which_day_it_is(world: World) -> None:
    """A close and its proof compute the same a year later."""
    world.attempt(1, input_computed=1200)
    assert weighed(world).outcome(1)[-1] == "EXPLAINED"


def test_both_sides_are_compared_at_once(world: World) -> None:
    """Waiting is for what is missing; a residual does not wait."""
    world.attempt(1, input_computed=100)
    world.reading(1, input_total=103)
    world.attempt(2, input_computed=100, usage_expected=False)
    out = weighed(world, as_of=DAY)
    assert out.outcome(1) == (100, 103, 3, 3, "UNEXPLAINED")
    assert out.outcome(2) == (100, None, None, None, "NOT_COMPARED")


def test_a_report_nobody_saw_waits_for_its_attempt(world: World) -> None:
    """No stranger is told of before segments of that day can come no more."""
    world.attempt(1, input_computed=100)
    world.reading(1, input_total=100)
    world.reading(2, input_total=70)
    early, final = weighed(world, as_of=TWO), weighed(world, as_of=THREE)
    assert early.outcome(2) == (None, 70, None, None, "PROVISIONAL")
    assert "unmatched_report" not in early.codes
    assert final.outcome(2) == (None, 70, None, None, "NOT_COMPARED")
    assert "unmatched_report" in final.codes


def test_more_reports_than_losses_wait_too_and_known_losses_do_not(world: World) -> None:
    """One lost and two strange reports: which one was lost may show itself yet."""
    world.lost(1)
    world.reading(1, input_total=70)
    world.reading(2, input_total=80)
    assert weighed(world, as_of=TWO).outcome(1)[-1] == "PROVISIONAL"
    assert weighed(world, as_of=THREE).outcome(1) == (None, 70, 70, 70, "UNEXPLAINED")
    world.tables["gap"][0]["attempts"] = 2
    assert weighed(world, as_of=TWO).outcome(1) == (None, 70, 70, 0, "EXPLAINED")


def test_each_provider_is_late_in_its_own_way(world: World) -> None:
    """Ten days for one, none for another, two for all others and those without a name."""
    late = Lateness(providers={"slow": {"reports": 10}, "fast": {"reports": 0}})
    for number, provider in enumerate(("slow", "fast", "openai", None), start=1):
        world.attempt(number, input_computed=10, provider=provider)
    out = weighed(world, as_of=DAY + timedelta(days=1), lateness=late)
    statuses = {number: out.outcome(number)[-1] for number in range(1, 5)}
    assert statuses == {1: "PROVISIONAL", 2: "EXPLAINED", 3: "PROVISIONAL", 4: "PROVISIONAL"}
    assert out.row(1)["open_until"] == DAY + timedelta(days=10)
    assert late.distinct == (0, 2, 10)


def test_a_later_run_tells_what_became_of_provisional_amounts(world: World) -> None:
    """A late report, a revised one, one that never came, and one that a seen attempt answers to."""
    for number in (1, 2, 3):
        world.attempt(number, input_computed=100)
    world.reading(2, verdict="UNKNOWN", flags=["usage_missing"])
    world.reading(4, input_total=70)
    lake = world.lake()
    first = reconcile(lake, as_of=DAY)
    assert first.transitions == ()
    # The report that may still come tells the output too.
    assert first.statuses == {"PROVISIONAL": 8}
    later = World(world.root)
    later.reading(1, input_total=100, day=DAY + timedelta(days=1))
    later.reading(2, input_total=60, cache_read=40, revision=1)
    later.attempt(4, input_computed=70)
    for table in later.tables:
        lake.append(table, later.frame(table))
    second = reconcile(lake, as_of=THREE)
    told = [each for each in second.transitions if each.direction == "input"]
    assert told == [
        Transition("2026-03", "openai", "input", "EXPLAINED", 2, 200, None, 60),
        Transition("2026-03", "openai", "input", "MATCHED", 2, 170, 70, 170),
    ]
    assert reconcile(lake, as_of=THREE).transitions == ()


def test_an_earlier_day_makes_amounts_provisional_again_and_the_same_day_changes_nothing(world: World) -> None:
    """The day is an input like any other: same day, same bytes."""
    world.attempt(1, input_computed=100)
    lake = world.lake()
    digests = []
    for day in (TWO, THREE, TWO):
        reconcile(lake, as_of=day)
        digests.append(lake.digest("reconciled"))
    assert digests[0] == digests[2] != digests[1]


@pytest.mark.parametrize("day", [date.max, date.min])
def test_the_ends_of_the_calendar_are_days_too(day: date) -> None:
    """What would lie beyond them lies at them."""
    late = Lateness(reports=36_500)
    found = late.waiting(day, ["openai"], [day])
    assert found is not None
    assert found["open_until"].max() == min(date.max, date.max if day == date.max else day + timedelta(days=36_500))


def test_days_of_which_nothing_can_come_are_told_by_how_late_it_might() -> None:
    """A night weighs a month again when one of its days is over for anybody."""
    late = Lateness(reports=1, attempts=1, providers={"slow": {"reports": 3}})
    days = [DAY, DAY + timedelta(days=1)]
    assert settled(days, DAY + timedelta(days=2), late) == [(1, DAY)]
    assert settled(days, DAY + timedelta(days=4), late) == [(1, DAY), (1, days[1]), (3, DAY)]
    assert settled(days, DAY, late) == []
