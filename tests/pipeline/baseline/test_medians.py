"""What is sorted moves along with the days, and is what sorting anew would give."""

from __future__ import annotations

import numpy as np
import pytest
from tests.pipeline.baseline.conftest import Ints

from weighbridge.pipeline.baseline.history import Mask
from weighbridge.pipeline.baseline.medians import MOST, Sorted

DAYS = 30


class Values:
    """Values of days, few of them different; how many days were asked for is counted."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.day = np.sort(rng.integers(0, DAYS, 900))
        self.values = rng.integers(0, 12, 900)
        self.asked = 0

    def of(self, first: int, last: int) -> Ints:
        """Those of the days first..last - 1."""
        self.asked += last - first
        found: Ints = self.values[(self.day >= first) & (self.day < last)]
        return found


@pytest.mark.parametrize("most", [MOST, 0])
def test_moved_along_is_sorted_anew(rng: np.random.Generator, most: int) -> None:
    """Days one after the other, several at once, a window that moves off its beginning; kept or not."""
    values, run = Values(rng), Sorted(most)
    for first, last in ((0, 5), (0, 6), (2, 9), (2, 9), (8, 20), (15, 30), (3, 8)):
        assert run.of("a", first, last, None, values.of).tolist() == np.sort(values.of(first, last)).tolist()


def test_only_the_days_that_come_and_go_are_sorted(rng: np.random.Generator) -> None:
    values, run = Values(rng), Sorted()
    run.of("a", 0, 20, None, values.of)
    values.asked = 0
    run.of("a", 1, 22, None, values.of)
    assert values.asked == 3
    assert run.since(["a", "b"], 5) == 1


def test_what_lies_behind_the_window_is_dropped(rng: np.random.Generator) -> None:
    """No day of it is asked for again, and its room is free for others."""
    values = Values(rng)
    run = Sorted(most=len(values.of(0, 5)) + len(values.of(10, 20)) - 1)
    run.of("a", 0, 5, None, values.of)
    assert run.since(["a"], 5) == 0
    assert run.since(["a"], 6) == 6
    run.of("b", 10, 20, None, values.of)
    values.asked = 0
    run.of("b", 10, 21, None, values.of)
    assert values.asked == 1


def test_rows_that_count_no_more_are_not_taken_from_before(rng: np.random.Generator) -> None:
    """A day confirmed as an incident meanwhile: all is sorted anew, without it."""
    values, run = Values(rng), Sorted()
    out: Mask = np.zeros((1, DAYS), bool)

    def counted(first: int, last: int) -> Ints:
        keep = ~out[0, values.day] & (values.day >= first) & (values.day < last)
        found: Ints = values.values[keep]
        return found

    run.of("a", 0, 10, out, counted)
    out[0, 12] = True  # not among those that are kept
    assert run.of("a", 0, 20, out, counted).tolist() == np.sort(counted(0, 20)).tolist()
    out[0, 7] = True
    assert run.of("a", 0, 21, out, counted).tolist() == np.sort(counted(0, 21)).tolist()
