"""What honest traffic teaches: a bound above the mean, never far above it, and too small as seldom as is said."""

from __future__ import annotations

import numpy as np
import pytest

from weighbridge.pipeline.audit.rate import RANGE, Rate
from weighbridge.pipeline.audit.tolerance import ERROR, LEAST_ROWS, greatest_mean, learnt, nothing_tolerated


def test_a_bound_on_answers_that_are_all_alike_comes_down_to_them() -> None:
    bound = float(greatest_mean(np.full((1, 5_000), 0.25), 0.001)[0])
    assert 0.25 < bound < 0.253


def test_a_bound_lies_about_as_far_above_the_mean_as_the_normal_law_has_it() -> None:
    """500 answers of +1 or -1 at even odds: sqrt(2 ln(1000) / 500) is 0.166."""
    values = np.tile([1.0, -1.0], (1, 250))
    assert 0.12 < float(greatest_mean(values, 0.001)[0]) < 0.25


def test_a_bound_is_too_small_at_most_as_often_as_was_said() -> None:
    """2,000 runs of 60 answers at one in five; 5 % of them are 100, and 130 are above every doubt."""
    values = (np.random.default_rng(7).random((2_000, 60)) < 0.2).astype(np.float64)
    assert int((greatest_mean(values, 0.05) < 0.2).sum()) <= 130


def test_one_answer_bounds_nothing() -> None:
    assert greatest_mean(np.array([[0.0]]), 0.001).tolist() == [1.0]


def test_a_tolerance_covers_the_honest_mean_on_both_sides_and_the_honest_slope() -> None:
    rng = np.random.default_rng(2)
    sizes = rng.integers(10, 3_000, (1, 2_000))
    gaps = rng.choice([0, 1, -1], p=[0.9, 0.08, 0.02], size=sizes.shape)
    held = learnt(gaps, sizes)
    assert held.calibrated
    assert 0.06 / 4 < held.over[0, 0] < 0.12 / 4
    assert -0.06 / 4 < held.under[0, 0] < 0.0, "answers are above their recounts as a rule, so one below is news"
    assert 0 <= held.steepest[0] < 1e-4
    assert -1e-4 < held.flattest[0] <= 0
    assert held.variance[0] == pytest.approx(0.1 - 0.06**2, abs=0.02)


def test_a_few_answers_calibrate_nothing() -> None:
    few = learnt(np.zeros((1, LEAST_ROWS - 1), np.int64), np.arange(LEAST_ROWS - 1)[None] + 5)
    assert not few.calibrated
    assert not nothing_tolerated().calibrated
    assert nothing_tolerated().over.tolist() == [0.0] * 4
    assert ERROR == 0.001


def test_where_sizes_are_all_alike_no_slope_is_tolerated() -> None:
    held = learnt(np.ones((1, 200), np.int64), np.full((1, 200), 50))
    assert (held.steepest[0], held.flattest[0]) == (0.0, 0.0)


def test_a_rate_lies_within_its_interval_and_the_interval_is_narrow() -> None:
    """Every answer of 200 tokens is billed as 201: 0.5 %."""
    rate, widths = Rate.start(), []
    for _ in range(4):
        rate = rate.further(np.ones(500, np.int64), np.full(500, 200))
        lower, upper = rate.interval(0.05)
        assert lower <= 0.005 <= upper
        widths.append(upper - lower)
    assert widths[0] >= widths[-1]
    assert widths[-1] <= 0.0046


def test_an_interval_of_nothing_is_its_whole_range() -> None:
    assert Rate.start().interval(0.01) == (-RANGE, RANGE)
    assert Rate.start().further(np.array([1]), np.array([10])).interval(0.01) == (-RANGE, RANGE)


def test_a_rate_outside_of_the_range_is_said_to_be_at_least_so_much() -> None:
    rate = Rate.start().further(np.full(400, 300), np.full(400, 100))
    assert rate.interval(0.01) == (0.1, RANGE)


def test_an_interval_misses_the_true_rate_at_most_as_often_as_was_said() -> None:
    """100 runs at a mean of 1 % (2 % on every second answer): 5 misses are promised at most, 12 beyond every doubt."""
    rng, missed = np.random.default_rng(3), 0
    for _ in range(100):
        gaps = 2 * (rng.random(300) < 0.5)
        rate, ever = Rate.start(), False
        for begin in range(0, 300, 100):
            rate = rate.further(gaps[begin : begin + 100], np.full(100, 100))
            lower, upper = rate.interval(0.05)
            ever |= not lower <= 0.01 <= upper
        missed += ever
    assert missed <= 11


def test_an_interval_that_goes_on_is_that_of_one_pass() -> None:
    rng = np.random.default_rng(5)
    gaps, sizes = rng.integers(-2, 4, 300), rng.integers(1, 800, 300)
    whole = Rate.start().further(gaps, sizes)
    parts = (
        Rate.start().further(gaps[:77], sizes[:77]).further(gaps[77:78], sizes[77:78]).further(gaps[78:], sizes[78:])
    )
    for name in ("seen", "above", "below", "out_below", "out_above"):
        assert getattr(parts, name).tolist() == getattr(whole, name).tolist()
