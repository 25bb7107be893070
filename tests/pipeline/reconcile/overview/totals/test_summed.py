"""Sums in one pass: exact, or not made at all."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weighbridge.pipeline.reconcile.overview.totals import summed
from weighbridge.pipeline.reconcile.overview.totals.summed import Few, Plain, Summed

FIGURE = st.one_of(st.integers(-3, 2**21), st.sampled_from([0, 2**34, -(2**39), 2**40]))
ROW = st.tuples(st.sampled_from([0, 1, 2, 300]), FIGURE, FIGURE, st.integers(-2, 2), st.integers(-2, 2))


def plain(rows: list[tuple[int, ...]]) -> Plain:
    """Rows as they are added up."""
    group, given_, output, *differences = np.array(rows, np.int64).reshape(-1, 5).T
    return Plain(group, given_, output, *map(Few.of, differences))


@given(
    pieces=st.lists(st.lists(ROW, min_size=1, max_size=20), max_size=5),
    near=st.sampled_from([1, 4, 2**16]),
    most=st.sampled_from([3, 10, 2**19 - 1]),
)
def test_sums_are_those_of_plain_arithmetic(pieces: list[list[tuple[int, ...]]], near: int, most: int) -> None:
    """Whatever is added up as one number and taken apart, and however often."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(summed, "_NEAR", near)
        patch.setattr(summed, "_MOST_ROWS", most)
        sums = Summed()
        for rows in pieces:
            assert sums.add(plain(rows))
        told = sums.drained()
        assert not len(sums.drained()["group"])
    expected: dict[int, list[int]] = defaultdict(lambda: [0] * 5)
    for group, *figures in (row for rows in pieces for row in rows):
        expected[group] = [one + other for one, other in zip(expected[group], (1, *figures), strict=True)]
    assert dict(zip(told["group"].tolist(), zip(*list(told.values())[1:], strict=True), strict=True)) == {
        group: tuple(figures) for group, figures in sorted(expected.items())
    }


@pytest.mark.parametrize("figure", [2**40, -(2**40)])
def test_what_might_no_longer_be_exact_is_refused(figure: int) -> None:
    """8,192 times 2^40 is 2^53, from where on floats leave whole numbers out; after draining there is room again."""
    sums = Summed()
    half = plain([(0, figure, 1, 0, 0)] * 4096)
    assert sums.add(half)
    assert not sums.add(half)
    assert sums.drained()["input"].tolist() == [4096 * figure]
    assert sums.add(half)


def test_a_figure_too_large_is_refused() -> None:
    """No group is made for it."""
    sums = Summed()
    assert not sums.add(plain([(5, 2**41, 0, 0, 0)]))
    assert not len(sums.drained()["group"])
