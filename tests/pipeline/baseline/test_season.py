"""The season of a row is the median of the others of its hour, of the finest kind the history allows."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Hashable

import numpy as np
import pytest
from tests.pipeline.baseline.conftest import NAME, Ints, history_of, y_of

from weighbridge.pipeline.baseline.history import NO_HOUR, History, Mask
from weighbridge.pipeline.baseline.medians import Sorted
from weighbridge.pipeline.baseline.season import CELL, HOUR_OF_DAY, HOUR_OF_WEEK, Centred, centred

TODAY = 84


def history(*hours: tuple[int, int, int, int]) -> History:
    """One cell; per hour of the week: how many of the last weeks have rows in it, how many each, of how many tokens.

    Every hour has one row today.
    """
    days, at, tokens = [], [], []
    for hour, weeks, a_week, size in hours:
        days += [TODAY - 7 * (week + 1) for week in range(weeks) for _ in range(a_week)] + [TODAY]
        at += [hour] * (weeks * a_week + 1)
        tokens += [size] * (weeks * a_week + 1)
    zero = np.zeros(len(days), np.int64)
    return history_of(zero, np.array(days), np.array(tokens), length=TODAY + 1, hour=np.array(at, np.uint8))


def apart(weeks: int, a_week: int) -> list[tuple[int, int, int, int]]:
    """Eight hours of short prompts on Mondays, and eight of long ones."""
    short = [(hour, weeks, a_week, 1000) for hour in range(8)]
    return [*short, *((hour, weeks, a_week, 10_000) for hour in range(12, 20))]


def today_of(held: History) -> Centred:
    """Today's rows, centred on the last twelve weeks."""
    return centred(held.rows, NAME, held.series, start=0, since=56, today=TODAY)


def levels(found: Centred) -> list[int]:
    """Those of today's rows."""
    return [int(level) for level in found.level[found.day == TODAY]]


@pytest.mark.parametrize(
    ("weeks", "a_week", "level"),
    [(8, 5, HOUR_OF_WEEK), (7, 5, CELL), (8, 4, CELL), (7, 6, HOUR_OF_DAY), (12, 4, HOUR_OF_DAY)],
)
def test_an_hour_of_the_week_needs_eight_weeks_of_five_rows(weeks: int, a_week: int, level: int) -> None:
    """Forty rows in an hour of the day are enough for that; else the cell is all there is."""
    assert levels(today_of(history(*apart(weeks, a_week)))) == [level] * 16


def test_hours_of_different_days_share_the_hour_of_the_day() -> None:
    """Mondays and Tuesdays from midnight to eight: 24 rows an hour each, 48 together; other hours have enough alone."""
    short = [(hour, 6, 4, 1000) for day in (0, 24) for hour in range(day, day + 8)]
    long = [(hour, 12, 6, 10_000) for hour in range(12, 20)]
    assert levels(today_of(history(*short, *long))) == [HOUR_OF_DAY] * 16 + [HOUR_OF_WEEK] * 8


def test_a_row_without_a_time_is_held_against_its_cell() -> None:
    found = today_of(history(*apart(8, 5), (NO_HOUR, 0, 0, 1000)))
    assert levels(found) == [*([HOUR_OF_WEEK] * 16), CELL]


def test_the_season_of_an_hour_is_taken_off() -> None:
    """Prompts of one hour are ten times those of another; beside their own hour, all rows are as ever."""
    found = today_of(history(*apart(8, 6)))
    assert found.score.tolist() == [0] * len(found.score)
    assert set(found.centre.tolist()) == set(y_of([1000, 10_000]).tolist())


def test_a_season_that_is_none_is_left_alone(rng: np.random.Generator) -> None:
    """Half of the rows are zero whatever the hour: medians of hours jump, and the cell's own is better."""
    rows = 4_000
    day, hour = rng.integers(0, TODAY + 1, rows), rng.integers(0, 24, rows).astype(np.uint8)
    tokens = np.where(rng.random(rows) < 0.5, 0, 700)
    held = history_of(np.zeros(rows, np.int64), day, tokens, length=TODAY + 1, hour=hour)
    found = today_of(held)
    assert set(levels(found)) == {CELL}
    assert len(set(found.centre.tolist())) == 1


def test_rows_of_a_confirmed_incident_say_nothing_about_the_season() -> None:
    """Eight weeks, one of them an incident: seven are left, too few for an hour of the week."""
    held = history(*apart(8, 5))
    out = np.zeros((1, TODAY + 1), bool)
    out[0, TODAY - 7] = True
    found = centred(held.rows, NAME, 1, start=0, since=56, today=TODAY, out=out)
    assert levels(found) == [CELL] * 16


def others(series: Ints, day: Ints, hour: Ints, y: Ints, row: int, level: int) -> int | None:
    """The median of the other past rows of the row's hour, or of all past rows of its cell, by the book."""
    same = [
        int(y[other])
        for other in range(len(y))
        if series[other] == series[row]
        and day[other] < TODAY
        and (
            level == CELL
            or (
                other != row
                and hour[other] != NO_HOUR
                and (hour[other] % 24 == hour[row] % 24 if level == HOUR_OF_DAY else hour[other] == hour[row])
            )
        )
    ]
    return math.floor(statistics.median(same)) if same else None


def test_the_centre_is_the_median_of_the_others_by_the_book(rng: np.random.Generator) -> None:
    """Three cells, few hours that differ, many ties, rows without a time; of every row, past or of today."""
    rows = 1_600
    series, day = rng.integers(0, 3, rows), np.sort(rng.integers(0, TODAY + 1, rows))
    hours = [*range(8), 24, NO_HOUR]
    hour = rng.choice(hours, rows, p=[0.28, *([0.08] * 7), 0.08, 0.08]).astype(np.uint8)
    tokens = rng.integers(1, 12, rows) + 40 * (hour % 24)
    held = history_of(series, day, tokens, length=TODAY + 1, hour=hour)
    found = centred(held.rows, NAME, 3, start=0, since=50, today=TODAY)
    asked = np.flatnonzero(day >= 50)
    assert set(found.level.tolist()) == {CELL, HOUR_OF_DAY, HOUR_OF_WEEK}
    at, y = hour.astype(np.int64), held.rows.y[NAME].astype(np.int64)
    for place, row in enumerate(asked):
        expected = others(series, day, at, y, int(row), int(found.level[place]))
        assert expected is None or found.centre[place] == expected


class Counting(Sorted):
    """Sorted values; how many days were sorted anew is counted, each time hours of the week were asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.days: list[int] = []

    def of(self, name: Hashable, first: int, last: int, out: Mask | None, values: Callable[[int, int], Ints]) -> Ints:
        """As `Sorted.of`."""
        anew: list[int] = []

        def noted(start: int, end: int) -> Ints:
            anew.append(end - start)
            return values(start, end)

        found = super().of(name, first, last, out, noted)
        if name == (NAME, HOUR_OF_WEEK):
            self.days.append(sum(anew))
        return found


def test_days_one_after_the_other_are_centred_as_each_alone(rng: np.random.Generator) -> None:
    """Eight Mondays lie in 55 days, but seven before a Monday: hours of the week wait for a day and move on by two.

    A Wednesday is confirmed as an incident on the way: all is sorted anew, once.
    """
    back, first, last = 55, TODAY - 2, TODAY + 8
    mondays, wednesdays = np.arange(0, last + 1, 7), np.arange(2, last + 1, 7)
    day = np.concatenate([mondays.repeat(16 * 6), wednesdays.repeat(4)])
    hour = np.concatenate([np.tile(np.r_[0:8, 12:20].repeat(6), len(mondays)), np.full(4 * len(wednesdays), 60)])
    tokens = np.where(hour < 8, 1000, 10_000) + rng.integers(0, 50, len(day))
    zero = np.zeros(len(day), np.int64)
    held = history_of(zero, day, tokens, length=last + 1, hour=hour.astype(np.uint8))
    run, out, weekly = Counting(), np.zeros((1, last + 1), bool), []
    for today in range(first, last + 1):
        out[0, TODAY - 5] = today > TODAY + 2
        found, alone = (
            centred(held.rows, NAME, 1, start=today - back, since=today - 28, today=today, out=out, run=kept)
            for kept in (run, None)
        )
        for name in ("series", "day", "y", "centre", "score", "level"):
            assert getattr(found, name).tolist() == getattr(alone, name).tolist()
        weekly.append(HOUR_OF_WEEK in found.level)
    assert weekly == [today % 7 != 0 for today in range(first, last + 1)]
    # One day comes and one goes; two of each after a Monday; 55 where nothing can be taken from before.
    assert run.days == [back, 2, 4, 2, back, 2, 2, 2, 4]
