"""The section of strategies: three scales side by side, the latest comparison, and what became of its advice."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from tests.pipeline.report.conftest import World

from weighbridge.pipeline.report.query.comparisons import comparison, recommendations, strategies
from weighbridge.pipeline.report.sections.s48_comparisons import blocks
from weighbridge.pipeline.report.sheet import BLANK, Chart
from weighbridge.pipeline.report.view import View

DENSE, SPARSE = "d" * 32, "5" * 32


def compared(day: str, number: str, strategy: str, **more: Any) -> dict[str, Any]:
    """A row of `comparison`."""
    made = datetime.fromisoformat(f"{day}T12:00:00").replace(tzinfo=UTC)
    return {
        "comparison_id": number * 32, "day": made.date(), "made_at": made, "strategy": strategy, "baseline": False,
        "parameters": "{}", "pairs": 60, "recommended": False, **more,
    }  # fmt: skip


def world() -> World:
    made = World()
    for number, strategy, attended in ((1, DENSE, 1000), (2, SPARSE, 250), (3, SPARSE, 150), (4, None, 7)):
        made.attempt(
            number, "2026-03-02T10:00:00", strategy_id=strategy, input_computed=40, output_computed=4, forward=50,
            attended=attended, attended_dense=1000, kv_appended=80, kv_evicted=20 if strategy == SPARSE else 0,
        )  # fmt: skip
        made.reading(number, "2026-03-02", 40, 3)
    made.put["comparison"] += [
        compared("2026-03-01", "a", "old"),
        compared("2026-03-05", "b", "window", strategy_id=SPARSE, judgement="not_worse", loss=0.004, loss_low=-0.001,
                 loss_high=0.0091, margin=0.02, saved=0.8, resource="attended", measure="agreement", recommended=True,
                 seconds=1.5, amount=Decimal("0.25"), currency="USD"),
        compared("2026-03-05", "b", "dense", strategy_id=DENSE, baseline=True),
        compared("2026-04-01", "c", "later"),
    ]  # fmt: skip
    return made


def test_billed_computed_and_attended_stand_side_by_side(march: Callable[[World], View]) -> None:
    rows = strategies(march(world())).rows
    assert rows == (
        ("dense", DENSE, 1, 43, 44, 50, 1000, 1000, Decimal(1), 0, Decimal(0)),
        ("window", SPARSE, 2, 86, 88, 100, 400, 2000, Decimal("0.2"), 40, Decimal("0.25")),
    )


def test_a_share_is_that_of_attempts_of_which_both_are_known(march: Callable[[World], View]) -> None:
    made = world()
    made.attempt(
        5, "2026-03-02T11:00:00", strategy_id=SPARSE, input_computed=40, output_computed=4, attended_dense=9000
    )
    (row,) = [row for row in strategies(march(made)).rows if row[1] == SPARSE]
    assert row[6:9] == (400, 11_000, Decimal("0.2"))


def test_the_latest_comparison_of_the_month_is_shown(march: Callable[[World], View]) -> None:
    sheet = comparison(march(world()))
    assert sheet.cells("strategy") == ["dense", "window"]
    assert sheet.cells("judgement") == ["baseline", "not_worse"]
    row = dict(zip([column.name for column in sheet.columns], sheet.rows[1], strict=True))
    assert [row[name] for name in ("loss", "loss_high", "saved", "recommended", "amount")] == [
        Decimal("0.0040"), Decimal("0.0091"), Decimal("0.8000"), "yes", Decimal("0.25"),
    ]  # fmt: skip
    assert [block.name for block in blocks(march(world())) if isinstance(block, Chart)] == ["comparison_curve"]


def test_where_it_acted_is_a_row_of_its_own_under_its_strategy(march: Callable[[World], View]) -> None:
    made = world()
    made.put["comparison"] += [
        compared("2026-03-05", "b", "window@acted", pairs=28, unshown=0, loss=0.05, loss_low=0.02, loss_high=0.08,
                 margin=0.02, saved=0.95, resource="attended"),
        compared("2026-03-05", "b", "topk", saved=0.9, unshown=32, judgement="undecided"),
    ]  # fmt: skip
    sheet = comparison(march(made))
    assert sheet.cells("strategy") == ["dense", "topk", "window", "window, where it acted"]
    assert sheet.cells("acted") == [None, 28, None, 28], "of a row that does not say it, it is not known"
    assert sheet.cells("loss_high")[2:] == [Decimal("0.0091"), Decimal("0.0800")]
    assert sheet.cells("recommended")[2:] == ["yes", BLANK]
    assert ("window", SPARSE) in [row[:2] for row in strategies(march(made)).rows]


def test_a_recommendation_is_shown_as_it_stood_when_the_month_ended(march: Callable[[World], View]) -> None:
    made = world()
    for change, (state, day) in enumerate((("proposed", 5), ("applied", 9), ("refused", 40))):
        at = datetime(2026, 3 if day < 32 else 4, day % 31, tzinfo=UTC)
        made.put["recommendation"].append({
            "recommendation_id": "e" * 32, "change": change, "state": state, "changed_at": at, "changed_by": "me",
            "comparison_id": "b" * 32, "strategy": "window", "parameters": '{"window":16}', "saved": 0.8,
        })  # fmt: skip
    (row,) = recommendations(march(made)).rows
    assert (row[0], row[2], row[3], row[6]) == ("window", "applied", date(2026, 3, 9), Decimal("0.8000"))


def test_where_nothing_was_compared_that_is_said(march: Callable[[World], View]) -> None:
    view = march(World())
    assert [sheet.rows for sheet in (strategies(view), comparison(view), recommendations(view))] == [(), (), ()]
    assert "No strategy was compared" in comparison(view).empty
    assert len(blocks(view)) == 3
