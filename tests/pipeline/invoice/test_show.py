"""What is shown of cells: their days by the billing zone, over the edge of a month, and causes that cancel out."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.pipeline.invoice.world import World, at

from weighbridge.pipeline.invoice.contract import Contract
from weighbridge.pipeline.invoice.show import cells_shown

BERLIN = {"openai": Contract("openai", zone="Europe/Berlin")}


def test_a_cell_has_its_day_by_the_billing_zone(tmp_path: Path) -> None:
    """22:00 UTC of 11 April is midnight of the 12th in Berlin."""
    world = World(tmp_path, contract=BERLIN["openai"])
    begin = datetime(2026, 4, 11, 22, tzinfo=UTC)
    world.call(at(12), input_uncached=1000)
    world.line("0.00212", begin, begin + timedelta(days=1))
    world.line("5", begin, begin + timedelta(days=3), kind="storage", model=None, token_class=None)
    tables, _ = world.reconcile()
    shown = cells_shown(tables, BERLIN, "2026-04", None, every=False)
    assert {(cell["kind"], cell["day"]) for cell in shown} == {
        ("storage", "2026-04-01..2026-04-30"),
        ("tokens", "2026-04-12"),
    }


def test_a_cell_of_april_that_reaches_into_may_is_shown_in_both(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.call(at(30, 20), input_uncached=1000)
    begin = datetime(2026, 4, 30, 12, tzinfo=UTC)
    world.line("0.00212", begin, begin + timedelta(days=1))
    tables, _ = world.reconcile()
    april, may, june = (
        cells_shown(tables, {}, month, None, every=False) for month in ("2026-04", "2026-05", "2026-06")
    )
    assert [cell["day"] for cell in april if cell["lines"]] == ["2026-04-30..2026-05-01"]
    assert [(cell["period"], cell["day"]) for cell in may] == [("2026-04", "2026-04-30..2026-05-01")]
    assert june == []


def test_of_another_provider_nothing_is_shown_and_cells_that_match_only_where_asked(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.call(at(12), input_uncached=1000)
    world.line("0.002", at(12, 0), tokens=1000)
    tables, _ = world.reconcile()
    assert cells_shown(tables, {}, None, None, every=False) == []
    assert len(cells_shown(tables, {}, None, "openai", every=True)) == 2
    assert cells_shown(tables, {}, None, "anthropic", every=True) == []
