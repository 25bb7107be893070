"""Bets on clipped gaps: worked by hand, a fair game under the promise, carried from night to night to the digit."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weighbridge.pipeline.audit.process import BOLDEST, Standing, advance
from weighbridge.pipeline.audit.scales import scaled

NOTHING = np.zeros(4)


def of(*figures: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    return np.array(figures, dtype=np.int64)


def test_gaps_are_clipped_at_4_32_and_256_tokens_and_at_their_size() -> None:
    four, thirty_two, many, relative = scaled(of(2, -16, 1000, 5, -5, 0), of(8, 8, 100, 0, 0, 0))
    assert four.tolist() == [0.5, -1.0, 1.0, 1.0, -1.0, 0.0]
    assert thirty_two.tolist() == [2 / 32, -0.5, 1.0, 5 / 32, -5 / 32, 0.0]
    assert many.tolist() == [2 / 256, -16 / 256, 1.0, 5 / 256, -5 / 256, 0.0]
    assert relative.tolist() == [0.25, -1.0, 1.0, 1.0, -1.0, 0.0]


def test_the_first_answer_is_not_bet_on_and_the_second_with_the_boldest_stake() -> None:
    """Four tokens too many on every answer of eight: T is 1 at scale 4, and 0.5 relative to the size."""
    course = advance(Standing.start(), of(4, 4, 4), of(8, 8, 8), NOTHING, NOTHING)
    four, thirty_two, many, relative = course.standing.over
    assert four == pytest.approx(2 * math.log1p(BOLDEST))
    assert thirty_two == pytest.approx(2 * math.log1p(BOLDEST / 8))
    assert many == pytest.approx(2 * math.log1p(BOLDEST / 64))
    assert relative == pytest.approx(2 * math.log1p(BOLDEST / 2))
    assert course.over[0] == pytest.approx(0.0)
    averaged = np.mean([(1 + BOLDEST * share) ** 2 for share in (1, 1 / 8, 1 / 64, 1 / 2)])
    assert course.over[-1] == pytest.approx(math.log(averaged))
    assert course.standing.under.tolist() == [0.0] * 4, "nothing is bet on what does not show"


def test_the_stake_is_the_sum_over_the_sum_of_squares() -> None:
    """At scale 4 with m = 0.25: T - m is 0.25, -0.75, 0.75 of earlier answers, so 0.25 / 1.1875 is put on the last."""
    tolerated = np.array([0.25, 0.9, 0.9, 0.9])
    course = advance(Standing.start(), of(2, -2, 4, 4), of(9, 9, 9, 9), tolerated, NOTHING)
    stakes = [(BOLDEST / 1.25, -0.75), (0.0, 0.75), (0.25 / (0.0625 + 0.5625 + 0.5625), 0.75)]
    assert course.standing.over[0] == pytest.approx(sum(math.log1p(stake * gain) for stake, gain in stakes))


def test_too_little_is_the_mirror_of_too_much() -> None:
    rng = np.random.default_rng(4)
    gaps, sizes = rng.integers(-9, 12, 300), rng.integers(1, 900, 300)
    over = np.array([0.1, 0.02, 0.01, 0.005])
    one = advance(Standing.start(), gaps, sizes, over, NOTHING)
    other = advance(Standing.start(), -gaps, sizes, NOTHING, over)
    assert one.over.tolist() == other.under.tolist()


@given(
    m=st.floats(-0.6, 0.6),
    past=st.lists(st.integers(-6, 6), min_size=1, max_size=30),
    low=st.integers(-4, -1),
    high=st.integers(1, 4),
)
@settings(deadline=None, max_examples=30)
def test_a_bet_is_fair_where_answers_are_on_average_as_tolerated(
    m: float, past: list[int], low: int, high: int
) -> None:
    """The next T is one of two values with the mean m: what K is worth on average after it is what it was worth."""
    bounded = min(max(m, low / 4), high / 4)
    chance = (bounded - low / 4) / (high / 4 - low / 4)
    tolerated = np.full(4, bounded)
    sizes = np.full(len(past), 10**9)
    before = advance(Standing.start(), np.array(past), sizes, tolerated, NOTHING).standing
    after = [
        advance(before, of(gap), of(10**9), tolerated, NOTHING).standing.over[0] - before.over[0] for gap in (low, high)
    ]
    expected = (1 - chance) * math.exp(after[0]) + chance * math.exp(after[1])
    assert expected == pytest.approx(1.0, abs=1e-9)


@given(cuts=st.lists(st.integers(0, 400), max_size=5), seed=st.integers(0, 50))
@settings(deadline=None, max_examples=10)
def test_going_on_comes_to_the_digits_of_one_pass(cuts: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    gaps, sizes = rng.integers(-3, 5, 400), rng.integers(0, 2_000, 400)
    tolerated = np.array([0.03, 0.01, 0.007, 0.006])
    whole = advance(Standing.start(), gaps, sizes, tolerated, tolerated)
    standing, parts = Standing.start(), []
    for begin, end in zip([0, *sorted(cuts)], [*sorted(cuts), 400], strict=True):
        course = advance(standing, gaps[begin:end], sizes[begin:end], tolerated, tolerated)
        standing = course.standing
        parts.append(course.over)
    assert np.concatenate(parts).tolist() == whole.over.tolist()
    for name in ("sums", "squares", "over", "under"):
        assert getattr(standing, name).tolist() == getattr(whole.standing, name).tolist()
    assert int(standing.rows) == 400


def test_many_runs_at_once_are_the_same_as_each_alone() -> None:
    rng = np.random.default_rng(1)
    gaps, sizes = rng.integers(-3, 5, (3, 50)), rng.integers(1, 500, (3, 50))
    tolerated = rng.random((3, 4)) / 10
    together = advance(Standing.start((3,)), gaps, sizes, tolerated, tolerated)
    for run in range(3):
        alone = advance(Standing.start(), gaps[run], sizes[run], tolerated[run], tolerated[run])
        assert together.over[run].tolist() == alone.over.tolist()
        assert together.standing.under[run].tolist() == alone.standing.under.tolist()


def test_nothing_overflows_where_every_answer_is_far_off() -> None:
    gaps, sizes = np.full(20_000, 2**40), np.full(20_000, 10)
    course = advance(Standing.start(), gaps, sizes, NOTHING, NOTHING)
    assert np.isfinite(course.over).all()
    assert course.over[-1] > 10_000
    assert course.over[-1] == pytest.approx(math.log1p(BOLDEST) * 19_999)
