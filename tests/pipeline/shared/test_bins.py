"""Bins begin where they are said to, and no row of a cell stands for fewer than eleven attempts."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weighbridge.pipeline.shared.bins import FEWEST, Released, binned, edges, merged

COUNTS = st.lists(st.one_of(st.none(), st.integers(0, 5_000)), min_size=FEWEST, max_size=120)


@pytest.mark.parametrize("per_octave", [2, 4])
def test_every_bin_holds_what_its_power_of_two_says(per_octave: int) -> None:
    """2^i <= (x + 1)^p < 2^(i + 1), for the number i of the bin; in whole numbers, so without any rounding."""
    begins = edges(per_octave)
    assert list(begins) == sorted(set(begins))
    assert begins[0] == 0
    for low, after in pairwise(begins):
        step = ((low + 1) ** per_octave).bit_length() - 1
        assert (after**per_octave).bit_length() - 1 == step, "the last value of a bin is in it"
        assert ((after + 1) ** per_octave).bit_length() - 1 > step, "and the next one is not"


@pytest.mark.parametrize(("per_octave", "apart"), [(2, 1.42), (4, 1.19)])
def test_a_bin_is_as_wide_as_its_part_of_an_octave(per_octave: int, apart: float) -> None:
    wide = [(after, low) for low, after in pairwise(edges(per_octave)) if low > 1_000]
    assert all(after / low < apart for after, low in wide)


def test_unknown_and_impossible_values_are_in_no_bin() -> None:
    values = pl.Series("x", [None, -1, 0, 1, 2, 3, 4, 2**63 - 1], dtype=pl.Int64)
    places = binned(values, edges(2))
    assert places.to_list()[:7] == [None, None, 0, 1, 2, 3, 3]
    assert places[7] == len(edges(2)) - 1


def test_small_bins_join_their_neighbour() -> None:
    counts = [(3, 2), (4, 1), (6, 6), (7, 30), (8, 9), (9, 3), (11, 4)]
    begins = (0, 1, 2, 3, 5, 7, 11, 15, 22, 31, 45, 63, 90)
    assert list(merged(counts, begins)) == [Released(3, 21, 39), Released(22, 89, 16)]


def test_values_nobody_knows_are_told_apart_only_where_they_are_many() -> None:
    assert list(merged([(None, 11), (2, 12)], edges(2))) == [Released(None, None, 11), Released(2, 2, 12)]
    assert list(merged([(None, 1), (2, 12), (3, 20)], edges(2))) == [Released(None, None, 13), Released(3, 4, 20)]


@given(values=COUNTS)
def test_no_row_is_small_none_is_lost_and_each_says_what_it_holds(values: list[int | None]) -> None:
    places = binned(pl.Series("x", values, dtype=pl.Int64), edges(2))
    counted = Counter(places.to_list())
    order = sorted(counted, key=lambda place: -1 if place is None else place)
    rows = list(merged([(place, counted[place]) for place in order], edges(2)))
    assert all(row.attempts >= FEWEST for row in rows)
    assert sum(row.attempts for row in rows) == len(values)
    assert [row.low is None for row in rows].count(True) <= 1
    bounds = [(row.low, row.high) for row in rows if row.low is not None and row.high is not None]
    assert all(low <= high for low, high in bounds)
    assert all(high < low for (_, high), (low, _) in pairwise(bounds))
    for low, high in bounds:
        inside = sum(1 for value in values if value is not None and low <= value <= high)
        assert inside == next(row.attempts for row in rows if row.low == low)
        assert low in edges(2)
        assert high + 1 in edges(2)
