"""Samples of large spaces of cases: the first and the last are among them, and every run takes the same."""

from __future__ import annotations

import pytest
from tests.sampling import some, whole


def test_a_sample_has_the_first_and_the_last_case_and_is_the_same_again() -> None:
    cases = range(100)
    found = some(cases, 5)
    assert len(found) == (100 if whole() else 5)
    assert (found[0], found[-1], sorted(set(found))) == (0, 99, found)
    assert some(cases, 5) == found


@pytest.mark.parametrize(("cases", "count"), [([], 2), ([7], 2), ([7, 8], 2), ([7, 8, 9], 4)])
def test_few_cases_are_all_looked_at(cases: list[int], count: int) -> None:
    assert some(cases, count) == cases


@pytest.mark.parametrize("count", [1, 0, -1])
def test_a_sample_without_both_ends_is_refused(count: int) -> None:
    with pytest.raises(ValueError, match="ask for 2 or more"):
        some([7, 8, 9], count)
