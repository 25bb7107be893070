"""The season of a row is the median of the others of its hour, of the finest kind the history allows."""

from __future__ import annotations

import math
import statistics

import numpy as np
import pytest
from tests.pipeline.baseline.conftest import NAME, Ints, history_of

from weighbridge.pipeline.baseline.history import NO_HOUR, History
from weighbridge.pipeline.baseline.season import CELL, HOUR_OF_DAY, HOUR_OF_WEEK, Centred, centred

TODAY = 84


def rows_of(hours: list[int], weeks: int, a_week: int, tokens: int = 100) -> tuple[list[int], list[int], list[int]]:
    """Days, hours and tokens of rows in some hours of each of the last weeks before today, and one of each today."""
    days, at, seen = [], [], []
    for hour in hours:
        for week in range(weeks):
            for _ in range(a_week):
                days.append(TODAY - 7 * (week + 1))
                at.append(hour)
                seen.append(tokens + hour)
        days.append(TODAY)
        at.append(hour)
        seen.append(tokens)
    return days, at, seen


def history(days: list[int], hours: list[int], tokens: list[int]) -> History:
    """One cell with these rows."""
    zero = np.zeros(len(days), np.int64)
    return history_of(zero, np.array(days), np.array(tokens), length=TODAY + 1, hour=np.array(hours, np.uint8))


def today_of(held: History) -> Centred:
    """Today's rows, centred on the last twelve weeks."""
    return centred(held.rows, NAME, held.series, start=0, since=TODAY, today=TODAY)


@pytest.mark.parametrize(
    ("weeks", "a_week", "level"),
    [(8, 5, HOUR_OF_WEEK), (7, 5, CELL), (8, 4, CELL), (7, 6, HOUR_OF_DAY), (12, 4, HOUR_OF_DAY)],
)
def test_an_hour_of_the_week_needs_eight_weeks_of_five_rows(weeks: int, a_week: int, level: int) -> None:
    """Forty rows in an hour of the day are enough for that; else the cell is all there is."""
    found = today_of(history(*rows_of([9], weeks, a_week)))
    assert found.level.tolist() == [level]


def test_hours_of_different_days_share_the_hour_of_the_day() -> None:
    """Monday and Tuesday at nine: 24 rows each, 48 together."""
    found = today_of(history(*rows_of([9, 33], 6, 4)))
    assert found.level.tolist() == [HOUR_OF_DAY, HOUR_OF_DAY]


def test_a_row_without_a_time_is_held_against_its_cell() -> None:
    days, hours, tokens = rows_of([9], 8, 5)
    found = today_of(history([*days, TODAY], [*hours, NO_HOUR], [*tokens, 100]))
    assert found.level.tolist() == [HOUR_OF_WEEK, CELL]


def test_the_season_of_an_hour_is_taken_off() -> None:
    """Prompts of one hour are ten times those of another; beside their own hour, today's rows are as ever."""
    days, hours, tokens = rows_of([9], 8, 6, tokens=1000)
    more = rows_of([15], 8, 6, tokens=10_000)
    found = today_of(history(days + more[0], hours + more[1], tokens + more[2]))
    assert np.abs(found.score / 2**20).max() < 0.01
    assert found.centre[1] > found.centre[0]


def others(series: Ints, day: Ints, hour: Ints, y: Ints, row: int, level: int) -> int | None:
    """The median of the other past rows of the row's group, by the book."""
    same = [
        int(y[other])
        for other in range(len(y))
        if other != row
        and series[other] == series[row]
        and day[other] < TODAY
        and (
            level == CELL
            or (
                hour[other] != NO_HOUR
                and (hour[other] % 24 == hour[row] % 24 if level == HOUR_OF_DAY else hour[other] == hour[row])
            )
        )
    ]
    return math.floor(statistics.median(same)) if same else None


def test_the_centre_is_the_median_of_the_others_by_the_book(rng: np.random.Generator) -> None:
    """Three cells, few hours, many ties, rows without a time; of every row, past or of today."""
    rows = 700
    series, day = rng.integers(0, 3, rows), rng.integers(0, TODAY + 1, rows)
    hour = rng.choice([0, 1, 24, NO_HOUR], rows, p=[0.4, 0.2, 0.3, 0.1]).astype(np.uint8)
    held = history_of(series, day, rng.integers(1, 12, rows), length=TODAY + 1, hour=hour)
    found = centred(held.rows, NAME, 3, start=0, since=50, today=TODAY)
    asked = np.flatnonzero(day >= 50)
    assert set(found.level.tolist()) == {CELL, HOUR_OF_DAY, HOUR_OF_WEEK}
    for place, row in enumerate(asked):
        expected = others(
            series, day, hour.astype(np.int64), held.rows.y[NAME].astype(np.int64), int(row), int(found.level[place])
        )
        assert expected is None or found.centre[place] == expected


def test_rows_of_a_confirmed_incident_say_nothing_about_the_season() -> None:
    """Eight weeks, one of them an incident: seven are left, too few for an hour of the week."""
    held = history(*rows_of([9], 8, 5))
    out = np.zeros((1, TODAY + 1), bool)
    out[0, TODAY - 7] = True
    found = centred(held.rows, NAME, 1, start=0, since=TODAY, today=TODAY, out=out)
    assert found.level.tolist() == [CELL]
