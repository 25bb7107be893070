"""Tails are exact: of small figures as sums of fractions, of large ones against what they must add up to."""

from __future__ import annotations

from fractions import Fraction
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weighbridge.pipeline.baseline.tails import (
    beta_binomial_tail,
    binomial_tail,
    hypergeometric_tail,
    log_factorial,
)


def one(tail: object, *figures: int) -> float:
    """A tail of one case."""
    return float(tail(*(np.array([figure]) for figure in figures))[0])  # type: ignore[operator]


def beta_binomial(exceeding: int, rows: int, reference: int, rank: int) -> Fraction:
    """The same tail as a sum of fractions: choices of where the new rows fall among those of the reference."""
    above, whole = reference + 1 - rank, comb(rows + reference, rows)
    mass = (comb(j + above - 1, j) * comb(rows - j + rank - 1, rows - j) for j in range(exceeding, rows + 1))
    return Fraction(sum(mass), whole)


@given(st.data())
def test_the_beta_binomial_tail_is_the_sum_of_its_fractions(data: st.DataObject) -> None:
    reference = data.draw(st.integers(1, 120))
    rank = data.draw(st.integers(1, reference))
    rows = data.draw(st.integers(0, 60))
    exceeding = data.draw(st.integers(0, rows + 1))
    found = one(beta_binomial_tail, exceeding, rows, reference, rank)
    assert found == pytest.approx(float(beta_binomial(exceeding, rows, reference, rank)), rel=1e-11)


@given(st.data())
def test_the_hypergeometric_tail_is_the_sum_of_its_fractions(data: st.DataObject) -> None:
    rows = data.draw(st.integers(0, 150))
    marked = data.draw(st.integers(0, rows))
    drawn = data.draw(st.integers(0, rows))
    seen = data.draw(st.integers(0, drawn + 1))
    mass = (comb(marked, j) * comb(rows - marked, drawn - j) for j in range(seen, drawn + 1))
    expected = Fraction(sum(mass), comb(rows, drawn))
    assert one(hypergeometric_tail, seen, drawn, marked, rows) == pytest.approx(float(expected), rel=1e-11)


@given(st.data())
def test_the_binomial_tail_is_the_sum_of_its_fractions(data: st.DataObject) -> None:
    trials = data.draw(st.integers(0, 60))
    successes = data.draw(st.integers(0, trials + 1))
    mass = (comb(trials, j) * 5**j * 95 ** (trials - j) for j in range(successes, trials + 1))
    expected = Fraction(sum(mass), 100**trials)
    found = binomial_tail(np.array([successes]), np.array([trials]), 0.05)
    assert float(found[0]) == pytest.approx(float(expected), rel=1e-10)


def test_a_tail_far_out_is_as_right_as_one_near_by() -> None:
    """All of 200 new rows above a limit that 5 % of 5,600 rows exceed; scipy's survival function says 0."""
    expected = beta_binomial(200, 200, 5600, 5321)
    assert float(expected) < 1e-200
    assert one(beta_binomial_tail, 200, 200, 5600, 5321) == pytest.approx(float(expected), rel=1e-9)


def test_counts_of_tens_of_millions_are_within_reach() -> None:
    """Of 28 million rows and a million new ones: as many as expected is even odds, a tenth more never happens."""
    reference, rows = 28_000_000, 1_000_000
    rank = reference + 1 - (reference + 1) * 5 // 100
    even = one(beta_binomial_tail, 50_000, rows, reference, rank)
    never = one(beta_binomial_tail, 55_000, rows, reference, rank)
    assert even == pytest.approx(0.5, abs=0.01)
    assert 0 < never < 1e-90


def test_factorials_are_those_of_exact_arithmetic() -> None:
    from math import lgamma  # noqa: PLC0415 - only here

    for n in (0, 1, 20, 1023, 1024, 5_000, 10**7):
        assert float(log_factorial(np.array([n]))[0]) == pytest.approx(lgamma(n + 1), rel=1e-14, abs=1e-14)


def test_scipy_agrees_where_its_own_figures_can_be_trusted() -> None:
    stats = pytest.importorskip("scipy.stats")
    exceeding, rows = np.array([0, 8, 12, 20]), np.array([200, 200, 200, 200])
    reference, rank = np.full(4, 999), np.full(4, 950)
    expected = stats.betabinom.sf(exceeding - 1, rows, reference + 1 - rank, rank)
    assert beta_binomial_tail(exceeding, rows, reference, rank) == pytest.approx(expected, rel=1e-6)
    marked = stats.hypergeom.sf(np.array([3, 5]) - 1, 1000, 60, np.array([40, 40]))
    found = hypergeometric_tail(np.array([3, 5]), np.array([40, 40]), np.full(2, 60), np.full(2, 1000))
    assert found == pytest.approx(marked, rel=1e-9)
