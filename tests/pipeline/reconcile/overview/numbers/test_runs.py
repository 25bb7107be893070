"""Sorted runs: places in them, cuts of several at the same values, and their merging, in memory and on disk alike."""

from __future__ import annotations

from itertools import chain, pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from weighbridge.pipeline.reconcile.overview.numbers import runs as module
from weighbridge.pipeline.reconcile.overview.numbers.runs import Ints, Run, cut, merged, values_between

ENDS = (-(2**63), 2**63 - 1)
NUMBERS = st.lists(st.one_of(st.integers(-4, 4), st.integers(-90, 90), st.sampled_from(ENDS)), max_size=40)
SLOW = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def ints(numbers: list[int]) -> Ints:
    return np.array(sorted(numbers), np.int64)


@pytest.fixture(params=[1, 2, 3, 7, 4096])
def step(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Marks of runs on disk, as close as they may be and further apart than any run here is long."""
    monkeypatch.setattr(module, "STEP", request.param)
    return int(request.param)


@SLOW
@given(numbers=NUMBERS, values=NUMBERS)
def test_places_on_disk_are_those_in_memory(step: int, numbers: list[int], values: list[int], tmp_path: Path) -> None:
    held, put = Run.held(ints(numbers)), Run.put_away(ints(numbers), tmp_path / "run.i64")
    asked = ints(values)
    expected = [sum(number < value for number in numbers) for value in asked.tolist()]
    assert held.places(asked).tolist() == put.places(asked).tolist() == expected
    assert len(put.marks) == -(-len(numbers) // step)


@SLOW
@given(numbers=NUMBERS, values=NUMBERS, cuts=st.lists(st.integers(0, 40), max_size=4))
def test_a_run_that_grew_is_one_that_was_put_away_at_once(
    step: int, numbers: list[int], values: list[int], cuts: list[int], tmp_path: Path
) -> None:
    """Its marks are in the same places, wherever it was cut."""
    whole, ends = ints(numbers), sorted(min(each, len(numbers)) for each in cuts)
    at_once = Run.put_away(whole, tmp_path / "once.i64")
    grown = Run.put_away(whole[: [*ends, len(numbers)][0]], tmp_path / "grown.i64")
    for start, end in pairwise([*ends, len(numbers)]):
        grown = grown.longer(whole[start:end])
    assert (grown.size, grown.marks.tolist()) == (at_once.size, at_once.marks.tolist())
    assert grown.places(ints(values)).tolist() == at_once.places(ints(values)).tolist()
    assert grown.piece(0, grown.size).tolist() == whole.tolist()
    assert step


@SLOW
@given(lists=st.lists(NUMBERS, max_size=5), pieces=st.integers(1, 9))
def test_pieces_hold_every_number_once_and_no_value_is_in_two(
    step: int, lists: list[list[int]], pieces: int, tmp_path: Path
) -> None:
    runs = [
        Run.put_away(ints(each), tmp_path / f"{number}.i64") if number % 2 else Run.held(ints(each))
        for number, each in enumerate(lists)
    ]
    values = values_between(runs, pieces)
    assert len(values) < pieces
    found = [merged(parts).tolist() for parts in cut(runs, values)]
    assert list(chain(*found)) == sorted(chain(*lists))
    assert step
    for below, above in pairwise(found):
        assert not set(below) & set(above)


def test_pieces_of_many_numbers_are_of_about_the_same_size(tmp_path: Path) -> None:
    """One run is ten times as long as the others: it counts ten times as much."""
    random = np.random.default_rng(5)
    sizes = (200_000, 20_000, 20_000)
    runs = [
        Run.put_away(np.sort(random.integers(-(2**62), 2**62, size)), tmp_path / f"{number}.i64")
        for number, size in enumerate(sizes)
    ]
    held = [sum(map(len, parts)) for parts in cut(runs, values_between(runs, 8))]
    assert (len(held), sum(held)) == (8, sum(sizes))
    assert max(held) < 1.5 * sum(sizes) / 8


def test_many_runs_are_merged_as_few_are() -> None:
    random = np.random.default_rng(6)
    for count in (0, 1, 16, 17, 40):
        lists = [np.sort(random.integers(-9, 9, 5)) for _ in range(count)]
        assert merged(lists).tolist() == sorted(int(number) for each in lists for number in each)
