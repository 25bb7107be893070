"""How attempts and reports met, and what residuals may cost."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from tests.pipeline.report.conftest import World

from weighbridge.pipeline.report.query.matching import matches, residual_money
from weighbridge.pipeline.report.view import View

Viewed = Callable[..., View]


def test_attempts_are_counted_once_by_what_their_sides_met_by(world: World, march: Viewed) -> None:
    """The first attempt has two rows, one a direction; whoever has one side only is not counted."""
    one = world.put["reconciled"][0]
    key = (one["attempt_lo"], one["attempt_hi"])
    for row in world.put["reconciled"]:
        row["matched_by"] = "time" if (row["attempt_lo"], row["attempt_hi"]) == key else None
    sheet = matches(march(world))
    assert [(row[0], row[2]) for row in sheet.rows] == [("time", 1)]
    assert sheet.total == ("All", "", 1)


def test_residuals_cost_at_least_and_at_most_what_their_rows_add_up_to(world: World, march: Viewed) -> None:
    """One row has a residual, of 10 tokens below: at most and at least are both below zero."""
    left = [row for row in world.put["reconciled"] if row["residual"]]
    assert [row["residual"] for row in left] == [-10]
    left[0].update(residual_low=Decimal("-0.00002"), residual_high=Decimal("-0.000005"), residual_currency="USD")
    (row,) = residual_money(march(world)).rows
    assert row[2:] == ("input", "USD", Decimal("-0.00002"), Decimal("-0.000005"), -10, 1)
    left[0].update(residual_low=None, residual_high=None, residual_currency=None)
    (row,) = residual_money(march(world)).rows
    assert row[6:] == (-10, 1)
    assert Decimal("-0.00002") not in row
