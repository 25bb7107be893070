"""Figures that are counted in their place: every row is counted once or given back."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from weighbridge.pipeline.reconcile.overview.totals.tally import PAGE, Tally

FIGURE = st.one_of(st.integers(-2, 5), st.integers(0, 5 * PAGE), st.sampled_from([-(2**40), 2**15, 2**40]))
ROW = st.tuples(st.one_of(st.integers(0, 3), st.sampled_from([70, 2**16 - 1, 2**21 - 3])), FIGURE)


@given(
    pieces=st.lists(st.lists(ROW, max_size=30), max_size=4),
    pages=st.sampled_from([1, 3, 50]),
    enough=st.integers(1, 5),
    together=st.sampled_from([1, 7, 40]),
)
def test_every_row_is_counted_or_given_back(
    pieces: list[list[tuple[int, int]]], pages: int, enough: int, together: int
) -> None:
    """Whatever comes first, and whether there is room for it."""
    tally = Tally(pages, enough, together)
    told: Counter[tuple[int, int]] = Counter()
    for rows in pieces:
        group, figure = np.array(rows, np.int64).reshape(-1, 2).T
        rest = tally.add(group, figure)
        assert len(np.unique(rest)) == len(rest)
        told.update(rows[place] for place in rest.tolist())
    ends = [0, *tally.cuts().tolist(), 2**21]
    found = [
        row
        for first, until in pairwise(ends)
        for row in zip(*(column.tolist() for column in tally.counted(first, until)), strict=True)
    ]
    assert [row[:2] for row in found] == sorted({row[:2] for row in found})
    told.update({(group, figure): count for group, figure, count in found})
    assert told == Counter(row for rows in pieces for row in rows)


def test_a_page_is_made_for_what_comes_often() -> None:
    """The first rows are given back, the others are counted, and rare figures never make one."""
    tally = Tally(pages=10, enough=100, together=1)
    often = np.zeros(60, np.int64)
    assert len(tally.add(often, often + 5)) == 60
    assert len(tally.add(often, often + 6)) == 0
    rare = np.arange(60, dtype=np.int64) * PAGE
    assert tally.add(often, rare).tolist() == list(range(1, 60))
    assert [column.tolist() for column in tally.counted(0, 9)] == [[0, 0], [0, 6], [1, 60]]


def test_cuts_have_no_more_pages_between_them_than_are_read_together() -> None:
    """A group has at most 64 pages here, so there is always a place to cut."""
    tally = Tally(pages=5_000, enough=1, together=1)
    group = np.repeat(np.arange(3_000), 2)
    figure = np.tile([0, PAGE], 3_000)
    assert len(tally.add(group, figure)) == 1_000
    cuts = tally.cuts().tolist()
    ends = [0, *cuts, 3_000]
    sizes = [len(tally.counted(*pair)[0]) for pair in pairwise(ends)]
    assert sum(sizes) == 5_000
    assert max(sizes) <= 512
