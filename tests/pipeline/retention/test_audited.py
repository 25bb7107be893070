"""What audits, engines and bills say: kept as long as other billing rows, of a month to its last day."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest
from tests.pipeline.retention.world import ACME, BETA, World, frame, policy, row

from weighbridge.pipeline.retention.erase import erase
from weighbridge.pipeline.retention.plan import plan
from weighbridge.pipeline.retention.subject import Subject

DAY = date(2026, 1, 10)
NOW = datetime(2026, 3, 4, 10, tzinfo=UTC)
OF_DAYS = ("audit_cell", "engine_gap", "engine_gap_cause", "comparison")
OF_MONTHS = ("invoice_cause",)


def filled(world: World) -> None:
    for table in OF_DAYS:
        world.lake.append(table, frame(table, [row(table, DAY)]))
    for table in OF_MONTHS:
        world.lake.append(table, frame(table, [row(table, DAY, period="2026-01")]))
    learnt = row("audit_tolerance", DAY, first_day=date(2026, 1, 1), last_day=DAY)
    world.lake.append("audit_tolerance", frame("audit_tolerance", [learnt]))
    end = datetime(2026, 2, 1, tzinfo=UTC)
    bill = row("invoice_detail", DAY, billing_start=datetime(2026, 1, 1, tzinfo=UTC), billing_end=end)
    world.lake.append("invoice_detail", frame("invoice_detail", [bill]))


def due(world: World, today: date) -> dict[str, int]:
    return {item.table: item.rows for item in plan(world.places, policy(billing=10), today).due}


def test_they_go_on_the_day_billing_rows_go(world: World) -> None:
    filled(world)
    assert due(world, date(2026, 1, 20)) == {}
    days = dict.fromkeys((*OF_DAYS, "audit_tolerance"), 1)
    assert due(world, date(2026, 1, 21)) == days
    # A bill ends with the last moment of January, not on the first of February.
    assert due(world, date(2026, 2, 10)) == days
    assert due(world, date(2026, 2, 11)) == days | dict.fromkeys((*OF_MONTHS, "invoice_detail"), 1)


def test_they_stay_when_somebody_is_erased(world: World) -> None:
    world.add(ACME, [DAY])
    filled(world)
    erase(world.places, Subject(tenant=ACME), by="officer", now=NOW, billing_too=True)
    assert {world.lake.rows(table) for table in (*OF_DAYS, *OF_MONTHS, "audit_tolerance", "invoice_detail")} == {1}


@pytest.mark.parametrize(("billing_too", "left"), [(False, {ACME, BETA}), (True, {BETA})])
def test_cells_of_bills_go_with_their_tenant_only_where_billing_goes_too(
    world: World, billing_too: bool, left: set[str]
) -> None:
    world.add(ACME, [DAY])
    rows = [
        row("invoice_gap", DAY, period="2026-01", cell=name * 32, tenant=of)
        for name, of in zip("ab", (ACME, BETA), strict=True)
    ]
    world.lake.append("invoice_gap", frame("invoice_gap", rows))
    erase(world.places, Subject(tenant=ACME), by="officer", now=NOW, billing_too=billing_too)
    assert set(world.lake.scan("invoice_gap").collect()["tenant"]) == left
