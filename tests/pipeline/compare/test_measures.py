"""Measures on token ids, against independent ways of working them out."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weighbridge.pipeline.compare.alone import alone
from weighbridge.pipeline.compare.pairwise import pairwise

IDS = st.lists(st.integers(0, 5), max_size=24)


def lcs(first: Sequence[int], second: Sequence[int]) -> int:
    """The longest common subsequence by its table."""
    row = [0] * (len(second) + 1)
    for one in first:
        before = row[:]
        for at, other in enumerate(second):
            row[at + 1] = before[at] + 1 if one == other else max(row[at], before[at + 1])
    return row[-1]


def edits(first: Sequence[int], second: Sequence[int]) -> int:
    """The Levenshtein distance by its table."""
    row = list(range(len(second) + 1))
    for at, one in enumerate(first, start=1):
        before, row = row, [at]
        for place, other in enumerate(second):
            row.append(min(before[place] + (one != other), row[-1] + 1, before[place + 1] + 1))
    return row[-1]


def grams(ids: Sequence[int], size: int) -> list[tuple[int, ...]]:
    """Runs of a size, in order."""
    return [tuple(ids[at : at + size]) for at in range(len(ids) - size + 1)]


def f1(first: Sequence[int], second: Sequence[int], size: int) -> float:
    """ROUGE by counting: recall and precision, then their harmonic mean."""
    one, other = grams(first, size), grams(second, size)
    if not one and not other:
        return float(first == second)
    shared = sum((Counter(one) & Counter(other)).values())
    recall, precision = (shared / len(side) if side else 0.0 for side in (one, other))
    return 2 * recall * precision / (recall + precision) if shared else 0.0


@given(IDS, IDS)
def test_two_answers_measured_another_way(off: list[int], on: list[int]) -> None:
    held = pairwise(off, on)
    longest = max(len(off), len(on))
    assert held.exact == (off == on)
    assert held.similarity == pytest.approx(2 * lcs(off, on) / (len(off) + len(on)) if longest else 1.0)
    assert held.edit == pytest.approx(1 - edits(off, on) / longest if longest else 1.0)
    assert held.replaced + held.deleted + held.inserted == edits(off, on)
    assert held.rouge_1 == pytest.approx(f1(off, on, 1) if longest else 1.0)
    assert held.rouge_2 == pytest.approx(f1(off, on, 2))
    assert off[: held.prefix] == on[: held.prefix]
    assert held.exact or off[held.prefix : held.prefix + 1] != on[held.prefix : held.prefix + 1]
    shared = sum((Counter(off) & Counter(on)).values())
    assert (held.in_order, held.in_order + held.moved, held.foreign) == (lcs(off, on), shared, len(on) - shared)


@given(st.lists(st.integers(0, 3), max_size=30))
def test_one_answer_measured_another_way(ids: list[int]) -> None:
    held = alone(ids)
    repeats = [size for size in range(1, len(ids)) if len(set(grams(ids, size))) < len(grams(ids, size))]
    assert held.longest_repeat == max(repeats, default=0)
    for size, share in ((1, held.distinct_1), (2, held.distinct_2), (4, held.rep_4)):
        runs = grams(ids, size)
        wanted = len(set(runs)) / len(runs) if runs else None
        assert share == (None if wanted is None else pytest.approx(wanted if size < 4 else 1 - wanted))


def test_a_block_that_moved_is_told_apart_from_ids_that_were_replaced() -> None:
    first, second, last = list(range(10)), list(range(20, 30)), list(range(40, 50))
    moved = pairwise(first + second + last, first + last + second)
    assert (moved.moved, moved.foreign, moved.moved_blocks) == (10, 0, 1)
    replaced = pairwise(first + second + last, first + list(range(60, 70)) + last)
    assert (replaced.moved, replaced.foreign, replaced.replaced, replaced.moved_blocks) == (0, 10, 10, 0)


@pytest.mark.parametrize("text", ["秤称出真正送到的货物", "for at in range(9):\n    total += at\n", "\U0001f69a" * 12])
def test_any_script_is_measured_by_its_ids(text: str) -> None:
    ids = [ord(sign) for sign in text]
    changed = [*ids[:4], 7, *ids[5:]]
    held = pairwise(ids, changed)
    assert (held.prefix, held.replaced, held.in_order) == (4, 1, len(ids) - 1)
    assert pairwise(ids, list(ids)).similarity == 1.0


def test_an_answer_that_goes_in_circles() -> None:
    held = alone([7, 8, 9] * 100)
    assert held.longest_repeat == 297
    assert held.rep_4 == pytest.approx(1 - 3 / 297)
    assert alone(list(range(300))).rep_4 == 0.0


def test_likeness_is_not_what_difflib_makes_of_it() -> None:
    """One id of 400 is another: the popular ones are junk to difflib, and half of the likeness with them."""
    off = [at % 20 for at in range(400)]
    on = [*off[:200], 99, *off[201:]]
    assert pairwise(off, on).similarity == pytest.approx(0.9975)
    assert difflib.SequenceMatcher(None, off, on).ratio() < 0.6


@pytest.mark.parametrize("ids", [[], [5], [5] * 2000])
def test_extremes_are_equal_to_themselves(ids: list[int]) -> None:
    assert pairwise(ids, list(ids))[:5] == (True, len(ids), 1.0, 1.0, 1.0)
    none = pairwise(ids, [])
    assert (none.similarity, none.relative_prefix) == ((1.0, 1.0) if not ids else (0.0, 0.0))
