"""From observed to reported, to the last token.

Input:  2620 observed - 1000 (usage missing) + 200 (reported twice) - 10 (special tokens) - 10 (residual) = 1800.
Output: 1055 observed - 400 (usage missing) + 80 (reported twice) = 735.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from tests.pipeline.report.conftest import World

from weighbridge.pipeline.report.query.gaps import cause_money, outcomes, statuses, waterfall
from weighbridge.pipeline.report.view import View

Viewed = Callable[..., View]


def test_the_ledger_closes(world: World, march: Viewed) -> None:
    steps = [(row[0], row[1], *row[3:6]) for row in waterfall(march(world)).rows]
    assert steps == [
        ("input", "observed", "", 2620, 6),
        ("input", "usage_missing", -1000, 1620, 1),
        ("input", "duplicate_report", 200, 1820, 1),
        ("input", "special_tokens", -10, 1810, 1),
        ("input", "residual", -10, 1800, 1),
        ("input", "reported", "", 1800, 6),
        ("output", "observed", "", 1055, 6),
        ("output", "usage_missing", -400, 655, 1),
        ("output", "duplicate_report", 80, 735, 1),
        ("output", "residual", 0, 735, 0),
        ("output", "reported", "", 735, 6),
    ]


def test_an_attempt_has_the_worse_of_its_two_outcomes(world: World, march: Viewed) -> None:
    assert {row[0]: row[2] for row in outcomes(march(world)).rows} == {
        "UNEXPLAINED": 1,  # attempt 5
        "PROVISIONAL": 0,
        "EXPLAINED": 3,  # 2, 3, 4
        "MATCHED": 2,  # 1, 7
        "NOT_COMPARED": 3,  # 6, 9, 10
    }


def test_outcomes_by_what_they_rest_on(world: World, march: Viewed) -> None:
    rows = statuses(march(world)).rows
    assert rows[:5] == (
        ("input", "MATCHED", "G1", 2, 110, 110, 0, 0, 0),
        ("input", "EXPLAINED", "G1", 2, 1200, 400, -800, -800, 0),
        ("input", "EXPLAINED", "G3", 1, 310, 300, -10, -10, 0),
        ("input", "UNEXPLAINED", "G1", 1, 1000, 990, -10, 0, -10),
        ("input", "NOT_COMPARED", "", 3, 48, 500, None, None, None),
    )


def test_causes_cost_what_their_currency_says_or_unknown(world: World, march: Viewed) -> None:
    for row, amount, currency in zip(world.put["gap_cause"], ("0.5", "0.25", "3"), ("USD", "USD", "EUR"), strict=False):
        row.update(amount=Decimal(amount), currency=currency)
    assert cause_money(march(world)).rows == (
        ("special_tokens", "EUR", Decimal(3), -10, 1),
        ("duplicate_report", "USD", Decimal("0.75"), 280, 2),
        ("usage_missing", "", None, -1400, 2),
    )


def test_a_month_that_was_not_reconciled_compares_nothing(bare: World, march: Viewed) -> None:
    bare.reading(1, "2026-03-01", 10, 5)
    view = march(bare)
    assert (waterfall(view).rows, outcomes(view).rows, statuses(view).rows) == ((), (), ())
