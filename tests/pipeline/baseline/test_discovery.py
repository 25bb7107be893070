"""Among many cells: Benjamini and Hochberg's rule, and what it promises."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from weighbridge.pipeline.baseline.discovery import PARTS, reported

Q = Fraction(5, 100)
NONE = np.empty(0)


def test_parts_are_a_whole() -> None:
    assert sum(PARTS) == 1


@given(st.lists(st.floats(0, 1), min_size=1, max_size=40))
def test_of_one_kind_it_is_the_textbooks_rule(values: list[float]) -> None:
    """Largest k such that k p-values are at most q k / m."""
    p = np.array(values)
    m = len(p)
    fits = [k for k in range(1, m + 1) if (p <= 0.05 * k / m).sum() >= k]
    bound = 0.05 * max(fits) / m if fits else -1.0
    assert reported([p, NONE, NONE], Q)[0].tolist() == (p <= bound).tolist()


def test_kinds_have_their_own_part_of_q() -> None:
    """One cell of each kind, all alone: each is reported up to its part of 5 %, times what the others bring."""
    one = np.array([0.0099])
    assert reported([one, np.array([1.0]), np.array([1.0])], Q)[0].tolist() == [True]
    assert reported([np.array([0.0101]), np.array([1.0]), np.array([1.0])], Q)[0].tolist() == [False]
    assert reported([np.array([1.0]), np.array([1.0]), np.array([0.0209])], Q)[2].tolist() == [True]


def test_cells_that_were_not_tested_neither_count_nor_are_reported() -> None:
    found = reported([np.array([np.nan, 0.04, np.nan]), np.full(3, np.nan), NONE], Q)
    assert [mask.tolist() for mask in found] == [[False, True, False], [False] * 3, []]


def test_nothing_tested_nothing_reported() -> None:
    assert [mask.tolist() for mask in reported([np.full(2, np.nan), NONE, NONE], Q)] == [[False, False], [], []]


def test_the_share_of_false_cells_is_what_was_promised() -> None:
    """500 nights of 1,000 cells, 20 of them moved; of the whole the false share is at most q, and most are found."""
    rng = np.random.default_rng(5)
    shares, found = [], 0
    for _ in range(500):
        p = rng.random(1_000)
        p[:10] *= 1e-5
        days = rng.integers(1, 4_001, 200) / 4_001
        days[:10] = 1 / 4_001
        hits = reported([p, days, NONE], Q)
        true, false = hits[0][:10].sum() + hits[1][:10].sum(), hits[0][10:].sum() + hits[1][10:].sum()
        shares.append(false / max(true + false, 1))
        found += true
    assert np.mean(shares) <= 0.05
    assert found > 0.8 * 500 * 20


def test_nights_on_which_nothing_moved_have_a_report_in_at_most_one_of_twenty() -> None:
    rng = np.random.default_rng(6)
    nights = 2_000
    any_hit = sum(
        any(mask.any() for mask in reported([rng.random(300), rng.random(50), rng.random(100)], Q))
        for _ in range(nights)
    )
    assert any_hit / nights <= 0.05 + 4 * np.sqrt(0.05 / nights)
