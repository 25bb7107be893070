"""Volume and freshness: limits worked out by hand, and no verdict where there is too little to go by."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta

import numpy as np
import pytest
from tests.pipeline.validate.conftest import DAY, Rows, clean

from weighbridge.pipeline.validate.arrivals import Freshness, Volume, arrivals, freshness, volume
from weighbridge.pipeline.validate.contract import contract
from weighbridge.pipeline.validate.counts import count

A_DAY = timedelta(days=1)
NEXT = DAY + A_DAY


def past(*counts: int, until: date = DAY) -> dict[date, int]:
    """Rows per day, the last of them on the day before `until`; days without rows are not there."""
    days = {until - (len(counts) - place) * A_DAY: rows for place, rows in enumerate(counts)}
    return {day: rows for day, rows in days.items() if rows}


def test_the_limits_are_the_second_of_28_days_widened_by_half_and_ten() -> None:
    """Days of 100 to 127 rows: the second lowest is 101, the second highest 126."""
    rows = past(*range(100, 128)) | {DAY: 101}
    assert volume("s", rows, DAY, NEXT) == Volume("s", DAY, 101, 101 - 50 - 10, 126 + 63 + 10, 28, 4 / 29)


def test_one_odd_day_in_the_window_does_not_widen_its_limits() -> None:
    usual = past(*[100] * 28) | {DAY: 100}
    odd = past(*[100] * 13, 9000, *[100] * 14) | {DAY: 100}
    assert volume("s", usual, DAY, NEXT) == volume("s", odd, DAY, NEXT)


def test_with_14_to_19_days_the_lowest_and_the_highest_are_taken() -> None:
    found = volume("s", past(*range(100, 114)) | {DAY: 5}, DAY, NEXT)
    assert (found.low, found.high, found.days, found.promise) == (100 - 50 - 10, 113 + 56 + 10, 14, 2 / 15)


@pytest.mark.parametrize(
    ("counts", "why"),
    [((100,) * 13, "13 days are too few"), ((50, 0, 0) * 9, "rows on every third day are no daily volume")],
)
def test_there_is_no_verdict_with_too_little_to_go_by(counts: tuple[int, ...], why: str) -> None:
    found = volume("s", past(*counts) | {DAY: 9000}, DAY, NEXT)
    assert (found.low, found.high) == (None, None), why


def test_a_day_that_is_not_over_can_be_too_large_and_not_too_small() -> None:
    found = volume("s", past(*[100] * 28), DAY, today=DAY)
    assert (found.rows, found.low, found.high) == (0, None, 160)


def test_days_without_rows_count_as_none() -> None:
    """Five days a week, none at week-ends: a Sunday without rows is usual."""
    week = (100, 100, 100, 100, 100, 0, 0)
    assert volume("s", past(*week * 4), DAY, NEXT).low == 0


def test_the_promise_of_the_unwidened_limits_is_kept() -> None:
    """On exchangeable days the second of 28 is passed on 4 of 29 days; the widened limits far less often."""
    rng = np.random.default_rng(5)
    outside = beyond = 0
    trials = 3000
    for _ in range(trials):
        drawn = rng.lognormal(7, 0.3, 29).astype(int)
        window = sorted(drawn[:-1])
        outside += not window[1] <= drawn[-1] <= window[-2]
        found = volume("s", past(*map(int, drawn[:-1])) | {DAY: int(drawn[-1])}, DAY, NEXT)
        assert found.low is not None
        assert found.high is not None
        beyond += not found.low <= drawn[-1] <= found.high
    assert abs(outside / trials - 4 / 29) < 0.02
    assert beyond / trials < 0.02


@pytest.mark.parametrize(
    ("active", "silent", "limit", "ended"),
    [
        ((0, 1, 2, 3), 2, 2, False),  # daily: a pause of one day, and a day more
        ((0, 7, 14, 21), 5, 8, False),  # weekly
        ((0, 1, 2), 5, None, False),  # no habit yet
        ((0, 1, 2, 3), 29, None, True),  # ended
        ((0, 1, 2, 40, 41, 42, 43), 3, 2, False),  # the long pause is older than the window
    ],
)
def test_a_source_is_held_to_its_own_pauses(
    active: tuple[int, ...], silent: int, limit: int | None, ended: bool
) -> None:
    newest = DAY + max(active) * A_DAY
    found = freshness("s", {DAY + n * A_DAY: 5 for n in active}, newest + silent * A_DAY)
    assert found == Freshness("s", newest, silent, limit, ended)


def found(rows: Rows, days: list[date], today: date) -> tuple[list[Volume], list[Freshness]]:
    parts = rows.lake.parts("attempt")
    looked = [part for part in parts if part.day in days]
    counted = count(rows.lake, "attempt", contract("attempt"), days, looked)
    return arrivals(rows.lake, "attempt", counted, parts, days, today)


def put(rows: Rows, source: str, of: Mapping[date, int]) -> None:
    number = rows.lake.rows("attempt")
    for day, how_many in of.items():
        made = (clean("attempt", number + n, day, source=source) for n in range(how_many))
        rows.put("attempt", *made)
        number += how_many


def test_days_before_those_looked_at_are_counted_from_their_files(rows: Rows) -> None:
    put(rows, "a", past(*[20] * 20) | {DAY: 60})
    volumes, fresh = found(rows, [DAY], NEXT)
    assert volumes == [Volume("a", DAY, 60, 0, 40, 20, 4 / 21)]
    assert fresh == [Freshness("a", DAY, 1, 2, ended=False)]


def test_each_source_has_limits_of_its_own_and_is_judged_from_its_first_day_to_where_freshness_speaks(
    rows: Rows,
) -> None:
    put(rows, "a", past(*[20] * 14) | {DAY: 20})
    put(rows, "b", {DAY - 14 * A_DAY: 3, DAY: 3})
    volumes, fresh = found(rows, [DAY - 20 * A_DAY, DAY, NEXT, NEXT + A_DAY, NEXT + 2 * A_DAY], NEXT + 9 * A_DAY)
    assert [(v.source, v.day, v.rows) for v in volumes] == [
        ("a", DAY, 20),
        ("a", NEXT, 0),
        ("a", NEXT + A_DAY, 0),
        ("b", DAY, 3),
    ]
    assert [(f.source, f.silent, f.limit) for f in fresh] == [("a", 10, 2), ("b", 10, None)]


def test_a_row_of_a_day_still_to_come_hides_no_silence_and_moves_no_limit() -> None:
    usual = past(*[5] * 10)
    far = usual | {DAY + 4000 * A_DAY: 1}
    assert freshness("s", far, DAY + 3 * A_DAY) == freshness("s", usual, DAY + 3 * A_DAY)
    assert volume("s", far, DAY, NEXT) == volume("s", usual, DAY, NEXT)


def test_days_still_to_come_are_told_with_how_far_ahead_they_are(rows: Rows) -> None:
    put(rows, "a", past(*[20] * 14) | {NEXT: 3, DAY + 30 * A_DAY: 1})
    volumes, _ = found(rows, [NEXT, DAY + 30 * A_DAY], DAY)
    assert volumes == [Volume("a", NEXT, 3, ahead=1), Volume("a", DAY + 30 * A_DAY, 1, ahead=30)]


def test_a_day_still_to_come_is_told_of_the_source_that_has_rows_there_and_of_no_other(rows: Rows) -> None:
    """The other one is silent no longer than is usual by then, which is no row ahead."""
    far = DAY + 2 * A_DAY
    put(rows, "a", past(*[5] * 8) | {DAY: 5})
    put(rows, "b", {DAY: 5, far: 1})
    volumes, _ = found(rows, [DAY, NEXT, far], DAY)
    assert [(v.source, v.day, v.rows, v.ahead) for v in volumes] == [
        ("a", DAY, 5, 0),
        ("b", DAY, 5, 0),
        ("b", far, 1, 2),
    ]
