"""Keys that make a plain pair doubtful, from those of all attempts and of what was set aside."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from weighbridge.pipeline.reconcile.overview import repeats as module
from weighbridge.pipeline.reconcile.overview.numbers.runs import Ints
from weighbridge.pipeline.reconcile.overview.repeats import Repeats

KEY = st.one_of(st.integers(-4, 4), st.sampled_from((-(2**63), 2**63 - 1)))
KEYS = st.lists(KEY, max_size=6)


@dataclass
class Stretch:
    """Second halves of keys of a stretch, as rows have them, and what becomes of them."""

    attempts: list[int]
    reports: list[int]
    crowded: set[int] = field(init=False)
    plain: set[int] = field(init=False)

    def __post_init__(self) -> None:
        """What a side has twice is joined with nothing."""
        self.crowded = {key for side in (self.attempts, self.reports) for key, n in Counter(side).items() if n > 1}
        self.plain = (set(self.attempts) & set(self.reports)) - self.crowded

    def add_to(self, repeats: Repeats) -> None:
        """As the overview does."""
        alone, told = ([key for key in side if key not in self.plain | self.crowded] for side in self.sides())
        repeats.add([ints(set(self.attempts))], np.array(alone, np.int64), np.array([*told, *self.crowded], np.int64))

    def sides(self) -> tuple[list[int], list[int]]:
        return self.attempts, self.reports


def ints(keys: set[int]) -> Ints:
    return np.array(sorted(keys), np.int64)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    sides=st.lists(st.tuples(KEYS, KEYS), max_size=5),
    beside=st.lists(st.sets(KEY, max_size=4), max_size=3),
    at_once=st.sampled_from([1, 3, 1000]),
)
def test_what_was_taken_for_plain_and_is_not_is_found(
    sides: list[tuple[list[int], list[int]]],
    beside: list[set[int]],
    at_once: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Whatever else has the key of a plain pair, and whatever would meet itself among what was set aside."""
    repeats = Repeats(tmp_path_factory.mktemp("runs"), at_once)
    stretches = [Stretch(*each) for each in sides]
    for stretch in stretches:
        stretch.add_to(repeats)
    for keys in beside:
        repeats.add_beside(ints(keys))
    found = repeats.found().tolist()
    assert all(below < above for below, above in pairwise(found))
    plain = {key for each in stretches for key in each.plain}
    in_attempts, in_reports = (Counter(k for each in stretches for k in set(each.sides()[n])) for n in (0, 1))
    needed = {key for counts in (in_attempts, in_reports) for key, count in counts.items() if count > 1}
    needed |= plain & set().union(*beside)
    crowded = {key for each in stretches for key in each.crowded}
    assert needed - crowded <= set(found)
    assert plain & needed <= set(found)
    possible = needed | crowded | (set(in_attempts) & set().union(*beside))
    assert set(found) <= possible


def test_a_pair_over_midnight_and_strangers_beside_are_no_repetition(tmp_path_factory: pytest.TempPathFactory) -> None:
    """An attempt without a report on one day, its report on the next one; and pairs of another month."""
    repeats = Repeats(tmp_path_factory.mktemp("runs"))
    Stretch([1, 2, 3], [1, 2]).add_to(repeats)
    Stretch([4], [3, 4, 9]).add_to(repeats)
    repeats.add_beside(ints({7, 8}))
    repeats.add_beside(ints({7, 8}))
    assert repeats.found().tolist() == []


def test_many_keys_are_looked_through_a_range_at_a_time(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In memory and on disk alike, and with kinds of which there are none."""
    monkeypatch.setattr(module, "_PIECE", 64)
    monkeypatch.setattr(module, "_PIECE_AWAY", 64)
    random = np.random.default_rng(4)
    for at_once in (256, 100_000):
        repeats = Repeats(tmp_path_factory.mktemp("runs"), at_once)
        days = [np.unique(random.integers(-(2**62), 2**62, 900)) for _ in range(3)]
        for day, again in zip(days, ([], days[0][::90], days[1][5:8]), strict=True):
            repeats.add([np.union1d(day, np.array(again, np.int64))], days[0][:0], days[0][:0])
        assert repeats.found().tolist() == sorted([*days[0][::90].tolist(), *days[1][5:8].tolist()])
