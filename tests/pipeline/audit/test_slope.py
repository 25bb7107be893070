"""Slopes: worked by hand, undetermined where few sizes differ, and at their level where the approximation is not."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weighbridge.pipeline.audit.quantiles import student_quantile, student_tail
from weighbridge.pipeline.audit.ranks import wealth
from weighbridge.pipeline.audit.slope import looks, share_of, slope_of, slopes


@pytest.mark.parametrize(
    ("freedom", "probability", "quantile"),
    [
        (1, 0.75, 1.0),  # Cauchy: tan(pi/4)
        (2, 0.95, 2.919985580),
        (6, 0.975, 2.446911851),
        (30, 0.999, 3.385184867),
        (10_000, 0.975, 1.960201240),
    ],
)
def test_quantiles_of_students_t_are_those_of_the_tables(freedom: int, probability: float, quantile: float) -> None:
    assert student_quantile(probability, freedom) == pytest.approx(quantile, abs=1e-8)


@given(t=st.floats(0, 200), freedom=st.integers(1, 2_000))
@settings(deadline=None, max_examples=25)
def test_a_tail_falls_from_a_half_to_nothing(t: float, freedom: int) -> None:
    assert 0.0 <= student_tail(t + 1, freedom) <= student_tail(t, freedom) <= 0.5


def test_a_slope_and_its_bounds_are_those_worked_out_by_hand() -> None:
    """d is 0 and 2 by turns on sizes 1, 1, ..., 8, 8: no slope at all, and residuals of -1 and 1."""
    sizes = np.repeat(np.arange(1, 9), 2)
    look = slope_of(np.tile([0, 2], 8), sizes, 0.025)
    x = sizes - 4.5
    leverage = 1 / 16 + x**2 / 84
    error = math.sqrt(float((x**2 / (1 - leverage) ** 2).sum())) / 84
    assert float(look.slope) == pytest.approx(0.0)
    assert float(look.intercept) == pytest.approx(1.0)
    assert look.upper == pytest.approx(2.144786688 * error)
    assert look.lower == pytest.approx(-2.144786688 * error)


def test_a_share_of_every_answer_has_that_share_as_its_slope() -> None:
    sizes = np.arange(100, 2_100, 100)
    look = slope_of(sizes // 50 + 1, sizes, 0.001)
    assert float(look.slope) == pytest.approx(0.02)
    assert float(look.intercept) == pytest.approx(1.0)
    assert look.lower == pytest.approx(0.02)


def test_a_slope_is_undetermined_where_few_sizes_differ_or_one_answer_decides() -> None:
    seven = slope_of(np.arange(14), np.tile(np.arange(7), 2), 0.01)
    assert [float(seven.lower), float(seven.upper)] == [-np.inf, np.inf]
    giant = slope_of(np.arange(20), np.array([*range(1, 20), 10**6]), 0.01)
    assert [float(giant.lower), float(giant.upper)] == [-np.inf, np.inf]
    alike = slope_of(np.arange(20), np.full(20, 5), 0.01)
    assert [float(alike.lower), float(alike.upper)] == [-np.inf, np.inf]


def test_all_looks_together_spend_alpha() -> None:
    assert looks(31) == (8, 10, 13, 16, 20, 25, 31)
    assert sum(map(share_of, range(1, 200_000))) == pytest.approx(1.0, abs=1e-5)
    assert [look.rows for look in slopes(np.zeros(20, np.int64), np.arange(20), 0.01)] == [8, 10, 13, 16, 20]


def test_a_bet_on_ranks_keeps_its_level_on_a_mixture_of_two_conventions() -> None:
    """Half of the answers have a gap of -10. 1,000 runs, 1 %: 10 are promised at most; 24 are beyond every doubt."""
    rng = np.random.default_rng(8)
    sizes = np.rint(300 * np.exp(0.9 * rng.standard_normal((1_000, 120)))).astype(np.int64)
    gaps = -10 * (rng.random(sizes.shape) < 0.5).astype(np.int64)
    assert int((wealth(gaps, sizes).max(axis=-1) >= math.log(100)).sum()) <= 23


def test_a_bet_on_ranks_wins_where_longer_answers_have_larger_gaps() -> None:
    rng = np.random.default_rng(8)
    sizes = np.rint(300 * np.exp(0.9 * rng.standard_normal((50, 60)))).astype(np.int64)
    won = (wealth(sizes // 50, sizes) >= math.log(100)).any(axis=-1)
    assert won.all()
    assert not (wealth(-(sizes // 50), sizes) >= math.log(100)).any(), "the other way round it loses"


def test_gaps_that_are_all_alike_are_ties_that_tell_nothing() -> None:
    sizes = np.tile(np.arange(1, 101), (200, 1))
    assert int((wealth(np.ones_like(sizes), sizes).max(axis=-1) >= math.log(20)).sum()) <= 22
