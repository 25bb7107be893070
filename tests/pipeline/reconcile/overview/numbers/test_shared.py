"""What rising runs have in common: all of it, and nothing else, however they lie in the table."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weighbridge.pipeline.reconcile.overview.numbers import shared
from weighbridge.pipeline.reconcile.overview.numbers.runs import Ints
from weighbridge.pipeline.reconcile.overview.numbers.shared import Marks

ENDS = (-(2**63), 2**63 - 1)
# Near one another, so that they share places, and as far apart as may be.
NUMBER = st.one_of(st.integers(0, 40), st.integers(*ENDS), st.sampled_from(ENDS))
RUNS = st.lists(st.sets(NUMBER, max_size=12), max_size=6)


def rising(numbers: set[int]) -> Ints:
    """A run."""
    return np.array(sorted(numbers), np.int64)


@given(runs=RUNS, others=RUNS, room=st.sampled_from([1, 32]), many=st.sampled_from([2, 64]))
def test_what_they_share_is_found(runs: list[set[int]], others: list[set[int]], room: int, many: int) -> None:
    """With much room and with little, by marks and merged; a table is used again with new marks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shared, "_ROOM", room)
        patch.setattr(shared, "_MANY", many)
        marks = Marks()
        for _ in range(2):
            counts = Counter(number for run in runs for number in run)
            found = marks.shared([rising(run) for run in runs])
            assert set(found.tolist()) == {number for number, count in counts.items() if count > 1}
            between = marks.shared_between([rising(run) for run in runs], [rising(run) for run in others])
            assert set(between.tolist()) == set().union(*runs) & set().union(*others)


def test_marks_begin_anew_when_all_are_used() -> None:
    """A mark of an earlier call is no mark of this one, though their numbers are the same again after 255 calls."""
    marks = Marks()
    runs = [rising({1, 1000}), rising({2, 2000})]
    for _ in range(600):
        assert marks.shared(runs).tolist() == []
    assert marks.shared([*runs, rising({2, 3000})]).tolist() == [2]


def test_numbers_close_together_are_merged() -> None:
    """One number far away makes all others share a place: they are compared all the same."""
    crowd = [rising({*range(n, 4000, 2), 2**60 + n}) for n in (0, 1)]
    assert Marks().shared(crowd).tolist() == []
    assert Marks().shared([*crowd, rising({7, 8})]).tolist() == [7, 8]
