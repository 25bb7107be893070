"""The life of findings: what may follow what, what is kept, and what a mistake is answered with."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone

import polars as pl
import pytest
from tests.pipeline.reconcile.conftest import World

from weighbridge.pipeline.lake import Lake, polars_schema
from weighbridge.pipeline.lake.life import states
from weighbridge.pipeline.reconcile.life.status import NEXT, acknowledge, change, life, waive
from weighbridge.pipeline.reconcile.reconcile import reconcile
from weighbridge.schemas.enumerations import FindingState, Severity
from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.finding import Finding

NOW = datetime(2026, 3, 4, 9, 30, tzinfo=UTC)
MAY = date(2026, 5, 31)
PATHS = {
    FindingState.OPEN: (),
    FindingState.ACKNOWLEDGED: (FindingState.ACKNOWLEDGED,),
    FindingState.WAIVED: (FindingState.WAIVED,),
    FindingState.DISPUTED: (FindingState.DISPUTED,),
    FindingState.CREDITED: (FindingState.DISPUTED, FindingState.CREDITED),
    FindingState.CLOSED: (FindingState.DISPUTED, FindingState.CLOSED),
}


@pytest.fixture
def lake(world: World) -> Lake:
    """A lake with two findings."""
    found = [
        Finding(
            code="usage_missing",
            severity=Severity.WARNING,
            period="2026-03",
            subject={"model": model},
            rows=1,
            cure="-",
        )
        for model in ("m-1", "m-2")
    ]
    made = world.lake()
    made.replace("finding", pl.DataFrame([each.row() for each in found], schema=polars_schema("finding")), days=None)
    return made


@pytest.fixture
def finding_id(lake: Lake) -> str:
    """The first of them."""
    return str(lake.scan("finding").collect()["finding_id"].sort()[0])


def put(lake: Lake, finding_id: str, state: FindingState) -> str:
    """Change a finding, with all that its new state needs."""
    waiver: dict[str, object] = {"reason": "known, and small", "expires": MAY} if state is FindingState.WAIVED else {}
    if state is FindingState.OPEN:
        waiver = {"reason": "found again"}
    return change(lake, finding_id, state, by="ann", now=NOW, **waiver)  # type: ignore[arg-type]


def history(lake: Lake) -> list[tuple[object, ...]]:
    """Every change."""
    names = ["change", "state", "changed_by", "reason", "expires_on", "changed_at"]
    return lake.scan("finding_status").sort("finding_id", "change").select(names).collect().rows()


@pytest.mark.parametrize("before", list(FindingState))
@pytest.mark.parametrize("after", list(FindingState))
def test_only_what_may_follow_follows(before: FindingState, after: FindingState, lake: Lake, finding_id: str) -> None:
    """The whole table of states: allowed changes are written, others are refused and say what is allowed."""
    for state in PATHS[before]:
        put(lake, finding_id, state)
    steps = len(history(lake))
    if after in NEXT[before]:
        put(lake, finding_id, after)
        assert states(lake, NOW.date())["state"].to_list() == [str(after)]
    elif after is before and before is not FindingState.OPEN:
        put(lake, finding_id, after)  # the same again
        assert len(history(lake)) == steps
    else:
        with pytest.raises(ConfigError, match=f"is {before} and cannot become {after}; what can follow is"):
            put(lake, finding_id, after)
        assert len(history(lake)) == steps


def test_every_change_is_kept_and_the_same_change_twice_is_one(lake: Lake, finding_id: str) -> None:
    """Who, when, why; a renewed waiver is a change of its own."""
    assert acknowledge(lake, finding_id[:8], by="ann", reason="looking into it", now=NOW) == finding_id
    acknowledge(lake, finding_id[:8], by="ann", reason="looking into it", now=NOW + timedelta(hours=1))
    acknowledge(lake, finding_id, by="bob@example", now=NOW + timedelta(hours=2))  # says nothing new
    later = NOW + timedelta(days=1)
    waive(lake, finding_id.upper(), by="bob@example", reason="credited", expires=MAY, now=later)
    waive(lake, finding_id, by="bob@example", reason="credited", expires=date(2026, 6, 30), now=later)
    assert history(lake) == [
        (0, "acknowledged", "ann", "looking into it", None, NOW),
        (1, "waived", "bob@example", "credited", MAY, later),
        (2, "waived", "bob@example", "credited", date(2026, 6, 30), later),
    ]


def test_a_reason_may_come_later(lake: Lake, finding_id: str) -> None:
    """The acknowledgement stays, and why is a change of its own."""
    acknowledge(lake, finding_id, by="ann", now=NOW)
    acknowledge(lake, finding_id, by="ann", reason="asked the provider", now=NOW)
    acknowledge(lake, finding_id, by="ann", now=NOW)
    assert [(row[1], row[3]) for row in history(lake)] == [
        ("acknowledged", None),
        ("acknowledged", "asked the provider"),
    ]


def test_a_waiver_ends_after_its_last_day(lake: Lake, finding_id: str) -> None:
    """On that day it still holds; the next day the finding is open, and may be waived again."""
    waive(lake, finding_id, by="ann", reason="known", expires=MAY, now=NOW)
    assert states(lake, MAY)["state"].to_list() == ["waived"]
    june = datetime(2026, 6, 1, tzinfo=UTC)
    assert states(lake, june.date()).select("state", "expires_on").rows() == [("open", MAY)]
    waive(lake, finding_id, by="ann", reason="still known", expires=date(2026, 6, 30), now=june)
    assert states(lake, june.date())["state"].to_list() == ["waived"]


def test_a_state_stays_when_the_finding_is_computed_again(world: World) -> None:
    """And the other findings are open."""
    world.attempt(1, input_computed=100)
    world.attempt(2, input_computed=100, model_served="m-2")
    lake = world.lake()
    reconcile(lake)
    first = str(lake.scan("finding").collect()["finding_id"].sort()[0])
    acknowledge(lake, first, by="ann", now=NOW)
    world.attempt(3, input_computed=100)
    lake.append("attempt", world.frame("attempt").tail(1))
    reconcile(lake)
    rows = life(lake, NOW.date()).sort("finding_id")
    assert rows.select("finding_id", "state", "changed_by").row(0) == (first, "acknowledged", "ann")
    assert rows.select("state", "changed_by").row(1) == ("open", None)
    assert "reason" not in rows.columns


def test_a_finding_that_is_gone_can_still_be_closed(lake: Lake, finding_id: str) -> None:
    """Its attempts were erased, its history was not."""
    acknowledge(lake, finding_id, by="ann", now=NOW)
    lake.replace("finding", lake.scan("finding").collect().head(0), days=None)
    change(lake, finding_id, FindingState.CLOSED, by="ann", now=NOW)
    assert states(lake, NOW.date())["state"].to_list() == ["closed"]


def test_times_are_kept_in_utc(lake: Lake, finding_id: str) -> None:
    """Eleven in the morning two hours east is nine."""
    east = datetime(2026, 3, 4, 11, tzinfo=timezone(timedelta(hours=2)))
    acknowledge(lake, finding_id, by="ann", now=east)
    assert states(lake, NOW.date())["changed_at"].to_list() == [datetime(2026, 3, 4, 9, tzinfo=UTC)]


@pytest.mark.parametrize(
    ("do", "message"),
    [
        (lambda lake, some: acknowledge(lake, some[:7], by="ann", now=NOW), "first 8 or more"),
        (lambda lake, _: acknowledge(lake, "zzzzzzzz", by="ann", now=NOW), "is no id"),
        (lambda lake, _: acknowledge(lake, "0123456789", by="ann", now=NOW), "no finding has an id that begins with"),
        (lambda lake, some: acknowledge(lake, some, by="Ann Other", now=NOW), "no blanks"),
        (lambda lake, some: acknowledge(lake, some, by="ann", now=datetime(2026, 3, 4)), "no time zone"),  # noqa: DTZ001
        (lambda lake, some: waive(lake, some, by="ann", reason=" ", expires=MAY, now=NOW), "needs a reason"),
        (
            lambda lake, some: waive(lake, some, by="ann", reason="x", expires=date(2026, 3, 3), now=NOW),
            "a last day that is not over; 2026-03-03 is no such day, today is 2026-03-04",
        ),
        (
            lambda lake, some: change(lake, some, FindingState.WAIVED, by="ann", reason="x", now=NOW),
            "a last day that is not over",
        ),
        (
            lambda lake, some: change(lake, some, FindingState.DISPUTED, by="ann", expires=MAY, now=NOW),
            "only a waiver has a last day",
        ),
    ],
)
def test_what_cannot_be_done_says_what_can(
    do: Callable[[Lake, str], str], message: str, lake: Lake, finding_id: str
) -> None:
    """Nothing is written then."""
    with pytest.raises(ConfigError, match=message):
        do(lake, finding_id)
    assert history(lake) == []


def test_a_beginning_that_several_ids_share_names_them(lake: Lake) -> None:
    """Up to ten of them."""
    shared = [f"abcdef01{number:024x}" for number in range(12)]
    rows = lake.scan("finding").drop("finding_id").head(1).collect()
    lake.replace("finding", rows.join(pl.DataFrame({"finding_id": shared}), how="cross"), days=None)
    with pytest.raises(ConfigError, match=rf"several ids: finding {shared[0]}, .* and 2 more; give more digits"):
        acknowledge(lake, "abcdef01", by="ann", now=NOW)
    assert acknowledge(lake, shared[3], by="ann", now=NOW) == shared[3]
