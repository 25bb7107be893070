"""Sums of a provider's own pages: kept as long as other billing rows, and erased with their tenant where those are."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest
from tests.pipeline.retention.world import ACME, BETA, World, frame, policy, row

from weighbridge.pipeline.retention.erase import erase
from weighbridge.pipeline.retention.plan import plan
from weighbridge.pipeline.retention.subject import Subject

DAY = date(2026, 1, 10)
NOW = datetime(2026, 3, 4, 10, tzinfo=UTC)


def filled(world: World) -> None:
    rows = [row("usage_period", DAY, cell_hi=at, cell_lo=at, tenant=name) for at, name in enumerate((ACME, BETA))]
    world.lake.append("usage_period", frame("usage_period", rows))


def test_they_go_on_the_day_billing_rows_go(world: World) -> None:
    filled(world)
    told = policy(billing=10)
    assert [item.rows for item in plan(world.places, told, date(2026, 1, 20)).due] == []
    due = plan(world.places, told, date(2026, 1, 21)).due
    assert {(item.table, item.rows) for item in due} == {("usage_period", 2)}


@pytest.mark.parametrize(("billing", "left"), [(True, [BETA]), (False, [ACME, BETA])])
def test_they_go_with_their_tenant_where_billing_counts_do(world: World, billing: bool, left: list[str]) -> None:
    world.add(ACME, [DAY])
    filled(world)
    erase(world.places, Subject(tenant=ACME), by="officer", now=NOW, billing_too=billing)
    assert world.lake.scan("usage_period").collect()["tenant"].sort().to_list() == sorted(left)
