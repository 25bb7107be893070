"""Limits are order statistics: the rank the promise names, or none."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from tests.pipeline.baseline.conftest import y_of

from weighbridge.pipeline.baseline.history import SCALE
from weighbridge.pipeline.baseline.limits import REFUSED, above, ordered, rank_of, tokens_at

ONE, TENTH = Fraction(1, 100), Fraction(1, 1000)


@pytest.mark.parametrize(
    ("rows", "rate", "rank"),
    [(98, ONE, None), (99, ONE, 99), (199, ONE, 198), (300, ONE, 298), (998, TENTH, None), (999, TENTH, 999)],
)
def test_the_rank_is_the_one_of_the_promise_or_there_is_none(rows: int, rate: Fraction, rank: int | None) -> None:
    """k = ceil((n + 1)(1 - rate)); 99 rows for 1 %, 999 for 0.1 %, fewer are refused."""
    scores = np.arange(rows, dtype=np.int32)
    limit = ordered(np.zeros(rows, np.int32), scores, 1).upper(rate)
    assert limit.tolist() == [REFUSED if rank is None else rank - 1]
    assert (int(rank_of(np.array([rows]), rate)[0]) <= rows) == (rank is not None)


def test_the_lower_limit_is_the_upper_one_of_the_mirrored_rows() -> None:
    scores = np.random.default_rng(2).integers(-1000, 1000, 199).astype(np.int32)
    cell = np.zeros(199, np.int32)
    assert ordered(cell, scores, 1).lower(ONE) == -ordered(cell, -scores, 1).upper(ONE)


def test_cells_keep_to_themselves_and_empty_ones_have_nothing() -> None:
    series = np.array([2, 0, 2, 0, 2, 0], np.int32)
    held = ordered(series, np.array([5, -1, 3, 7, 9, 1], np.int32), 3)
    assert held.sizes.tolist() == [3, 0, 3]
    assert held.median().tolist() == [1, REFUSED, 5]
    assert np.isnan(held.spread()[1])


def test_rows_that_tie_with_the_limit_do_not_exceed_it() -> None:
    """All values alike: the limit is that value, and nothing is above it."""
    cell, score = np.zeros(200, np.int32), np.full(200, 17, np.int32)
    limit = ordered(cell, score, 1).upper(Fraction(5, 100))
    assert limit.tolist() == [17]
    assert above(cell, score, limit, 1).tolist() == [0]


@pytest.mark.parametrize("tokens", [0, 1, 17, 4096, 131_072, 999_999])
def test_tokens_come_back_from_their_scale_as_they_went_in(tokens: int) -> None:
    assert tokens_at(y_of([tokens]).astype(np.int64), np.array([True])).tolist() == [tokens]


def test_huge_counts_come_back_to_one_part_in_a_million() -> None:
    back = int(tokens_at(y_of([2**40]).astype(np.int64), np.array([True]))[0])
    assert abs(back - 2**40) < 2**40 / 10**6
    assert tokens_at(np.array([5 * SCALE]), np.array([False])).tolist() == [-1]
