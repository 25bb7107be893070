"""Totals of the rich world, worked out by hand.

Reported: attempts 1, 2 (twice), 3, 5, 6, 7 with 100+400+300+990+500+10 in and 50+160+120+400+100+5 out.
Observed: 1, 2, 3, 4, 5, 7, 10 with 100+200+310+1000+1000+10+48 in and 50+80+120+400+400+5+20 out.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from decimal import Decimal

import pytest
from tests.pipeline.report.conftest import World

from weighbridge.pipeline.report.query.totals import amounts, daily, totals
from weighbridge.pipeline.report.view import View

Viewed = Callable[..., View]


def test_every_measure_says_for_how_many_attempts_it_is_known(world: World, march: Viewed) -> None:
    assert totals(march(world)).rows == (
        ("reported", 2300, 835, 3135, "tokens", 6, 9),
        ("billed", 1310, 435, 1745, "tokens", 5, 9),
        ("observed", 2668, 1075, 3743, "tokens", 7, 9),
        ("computed", 2358, 955, 3313, "tokens", 6, 9),
        ("delivered", None, None, None, "tokens", 0, 9),
        ("recounted", 310, 120, 430, "tokens", 1, 9),
        ("attended", None, None, 3_000_000, "keys", 2, 9),
    )


def test_money_is_exact_and_currencies_are_never_added(world: World, march: Viewed) -> None:
    assert amounts(march(world)).rows == (
        ("EUR", Decimal("0.01"), 1, 600, Decimal("16.666666666666666667"), Decimal("0.01")),
        ("USD", Decimal("0.00604"), 4, 1145, Decimal("5.275109170305676856"), Decimal("0.00151")),
    )


def test_the_trend_has_every_day(world: World, march: Viewed) -> None:
    sheet = daily(march(world))
    usd, dear = Decimal("0.00151"), Decimal("0.0045")
    assert sheet.cells("day") == [date(2026, 3, day) for day in range(1, 32)]
    assert sheet.row(day=date(2026, 3, 1))[1:] == (2, 500, 210, 710, 430, 430, None, 0, usd, 0)  # type: ignore[index]
    second = (2, 300, 120, 420, 1830, 1400, 1_500_000, 0, dear, 0)
    assert sheet.row(day=date(2026, 3, 2))[1:] == second  # type: ignore[index]
    assert sheet.row(day=date(2026, 3, 3))[1:] == (0,) * 10  # type: ignore[index]


def test_a_day_with_unpriced_usage_has_no_amount_in_a_currency_none_of_it_is_known_in(
    world: World, march: Viewed
) -> None:
    row = daily(march(world)).row(day=date(2026, 3, 5))
    assert row is not None
    assert row[-3:] == (Decimal("0.01"), None, 1)


def test_a_contradictory_report_counts_for_nothing_and_is_not_zero(world: World, march: Viewed) -> None:
    row = daily(march(world)).row(day=date(2026, 3, 10))
    assert row is not None
    assert row[1:] == (2, None, None, None, 68, 68, None, None, None, 1)


@pytest.mark.parametrize(
    ("zone", "attempts", "reported", "usd"),
    [
        ("UTC", 9, 3135, "0.00604"),
        ("Europe/Berlin", 9, 3135 - 15 + 10, "0.00603"),  # attempt 8 comes in on 1 March, 7 leaves for 1 April
        ("America/New_York", 8, 3135 - 150, "0.00577"),  # attempt 1 is of 28 February there
    ],
)
def test_the_zone_is_chosen_when_the_report_is_made(
    world: World, march: Viewed, zone: str, attempts: int, reported: int, usd: str
) -> None:
    view = march(world, zone)
    row = totals(view).row(measure="reported")
    assert row is not None
    assert (row[3], row[6]) == (reported, attempts)
    assert amounts(view).figure("amount", currency="USD").value == Decimal(usd)


def test_in_berlin_the_last_evening_of_february_is_the_first_of_march(world: World, march: Viewed) -> None:
    sheet = daily(march(world, "Europe/Berlin"))
    first, last = sheet.row(day=date(2026, 3, 1)), sheet.row(day=date(2026, 3, 31))
    assert first is not None
    assert last is not None
    assert first[1:4] == (3, 507, 213)
    assert last[1:4] == (0, 0, 0)


def test_sums_beyond_64_bits(bare: World, march: Viewed) -> None:
    for number in (1, 2, 3):
        bare.reading(number, "2026-03-01", 2**62, 2**61, input_uncached=2**62, output_visible=2**61)
    row = totals(march(bare)).row(measure="reported")
    assert row is not None
    assert row[1:4] == (3 * 2**62, 3 * 2**61, 3 * 2**62 + 3 * 2**61)
    assert daily(march(bare)).cells("reported_input_tokens")[0] == 3 * 2**62


def test_no_rows_give_zero_and_not_unknown(bare: World, march: Viewed) -> None:
    assert [row[1:4] for row in totals(march(bare)).rows if row[0] == "reported"] == [(0, 0, 0)]
    assert amounts(march(bare)).rows == ()
