"""Requests of a day: week and growth are ordinary, a burst is not, and little history says nothing."""

from __future__ import annotations

import numpy as np
import pytest

from weighbridge.pipeline.baseline.day_counts import count_scores
from weighbridge.pipeline.baseline.history import Ints
from weighbridge.pipeline.baseline.siblings import rank_p_values
from weighbridge.pipeline.baseline.spans import Floats

WEEK = np.array([1.0, 1.06, 1.04, 1.0, 0.92, 0.38, 0.32])


def counts(rng: np.random.Generator, series: int, days: int, *, growth: float = 0.0, differ: float = 0.08) -> Ints:
    """Series x day: requests with a week, growth a month, and days that differ beyond counting."""
    number = np.arange(days)
    level = rng.lognormal(5, 0.7, (series, 1)) * WEEK[number % 7] * (1 + growth) ** (number / 30)
    drawn: Ints = rng.poisson(level * np.exp(differ * rng.standard_normal((series, days))))
    return drawn


def p_of(held: Ints) -> Floats:
    """The p-values of the last day."""
    found = count_scores(held, np.ones(held.shape, bool))
    return rank_p_values(found.today, found.past)


@pytest.mark.parametrize("growth", [0.0, 0.12, -0.1])
def test_week_and_growth_are_no_alarm(growth: float) -> None:
    """Fifty nights of forty series: 5 % of p-values at 5 %, 1 % at 1 %, whatever the growth of a month."""
    found = np.concatenate(
        [p_of(counts(np.random.default_rng([night, 4]), 40, 85, growth=growth)) for night in range(50)]
    )
    for level in (0.05, 0.01, 0.001):
        assert (found <= level).mean() <= level + 4 * np.sqrt(level / len(found))
    assert (found <= 0.05).mean() > 0.02


@pytest.mark.parametrize(("factor", "level"), [(1.5, 0.02), (2.0, 0.001), (3.0, 0.0005)])
def test_a_burst_is_among_the_least_likely_days(rng: np.random.Generator, factor: float, level: float) -> None:
    held = counts(rng, 40, 85)
    busiest = int(held.sum(axis=1).argmax())
    held[busiest, -1] = int(held[busiest, -8] * factor)
    assert p_of(held)[busiest] <= level


def test_five_days_that_are_high_count_together(rng: np.random.Generator) -> None:
    """+25 % on each of five days is no burst on any one of them."""
    held = counts(rng, 40, 85)
    busiest = int(held.sum(axis=1).argmax())
    one = held.copy()
    one[busiest, -1] = int(one[busiest, -1] * 1.25)
    held[busiest, -5:] = (held[busiest, -5:] * 1.25).astype(np.int64)
    assert p_of(held)[busiest] < p_of(one)[busiest]
    assert p_of(held)[busiest] < 0.01


def test_a_series_has_no_centre_before_its_second_week_is_over(rng: np.random.Generator) -> None:
    """Two days of the same weekday have to lie before it."""
    held = counts(rng, 5, 85)
    known = np.ones(held.shape, bool)
    known[0, :-14] = False  # first seen fourteen days ago
    known[1, :-15] = False
    settled = count_scores(held, known).settled
    assert settled.tolist() == [False, True, True, True, True]


def test_the_centre_is_the_median_of_the_same_weekday_in_four_weeks() -> None:
    """Mondays of 10, 20, 40 and 80 requests, the latest last: half way between 20 and 40, in logarithms."""
    held = np.zeros((1, 29), np.int64)
    held[0, [0, 7, 14, 21]] = [10, 20, 40, 80]
    found = count_scores(held, np.ones(held.shape, bool))
    assert found.centre[0] == pytest.approx((np.log(21) + np.log(41)) / 2)


def test_a_day_of_which_nothing_is_known_is_not_a_day_without_requests() -> None:
    held = np.full((1, 29), 50)
    held[0, 21] = 0
    known = np.ones(held.shape, bool)
    known[0, 21] = False
    assert count_scores(held, known).centre[0] == pytest.approx(np.log(51))
