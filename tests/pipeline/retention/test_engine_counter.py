"""Counters of engines: kept as long as other billing rows; they name nobody, so no erasure touches them."""

from __future__ import annotations

from datetime import UTC, date, datetime

from tests.pipeline.retention.world import ACME, World, frame, policy, row

from weighbridge.pipeline.retention.erase import erase
from weighbridge.pipeline.retention.plan import plan
from weighbridge.pipeline.retention.subject import Subject

DAY = date(2026, 1, 10)
NOW = datetime(2026, 3, 4, 10, tzinfo=UTC)


def filled(world: World) -> None:
    rows = [row("engine_counter", DAY, cell_hi=at, cell_lo=at, revision=0) for at in range(2)]
    world.lake.append("engine_counter", frame("engine_counter", rows))
    learnt = row("recount_constant", DAY, period="2026-01", first_day=DAY, last_day=DAY)
    world.lake.append("recount_constant", frame("recount_constant", [learnt]))


def test_they_go_on_the_day_billing_rows_go(world: World) -> None:
    filled(world)
    told = policy(billing=10)
    assert plan(world.places, told, date(2026, 1, 20)).due == ()
    due = {item.table: item.rows for item in plan(world.places, told, date(2026, 1, 21)).due}
    assert due == {"engine_counter": 2}
    # What was learnt of a month is about its last day.
    due = {item.table: item.rows for item in plan(world.places, told, date(2026, 2, 11)).due}
    assert due == {"engine_counter": 2, "recount_constant": 1}


def test_they_stay_when_somebody_is_erased(world: World) -> None:
    world.add(ACME, [DAY])
    filled(world)
    erase(world.places, Subject(tenant=ACME), by="officer", now=NOW, billing_too=True)
    assert (world.lake.rows("engine_counter"), world.lake.rows("recount_constant")) == (2, 1)
