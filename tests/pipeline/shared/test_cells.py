"""No released cell is small, and no small one can be had by subtracting released ones from each other."""

from __future__ import annotations

from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st

from weighbridge.pipeline.shared.bins import FEWEST
from weighbridge.pipeline.shared.cells import Cell, Label, labels

NAMES = st.sampled_from("abc")
COUNTS = st.dictionaries(st.tuples(NAMES, NAMES, NAMES), st.integers(1, 40), min_size=1, max_size=18)


def told(counts: dict[Cell, int]) -> dict[Label, int]:
    """What a day's cells are released as."""
    out: dict[Label, int] = defaultdict(int)
    for cell, label in labels(counts).items():
        out[label] += counts[cell]
    return dict(out)


def test_large_cells_are_told_by_their_names() -> None:
    counts: dict[Cell, int] = {
        ("openai", "gpt", "chat"): 20,
        ("openai", "gpt", "code"): 11,
        ("google", "gem", "chat"): 30,
    }
    assert told(counts) == {
        ("openai", "gpt", "chat"): 20,
        ("openai", "gpt", "code"): 11,
        ("google", "gem", None): 30,  # its only task would be known of everybody who used it
    }


def test_a_small_cell_takes_the_smallest_one_beside_it() -> None:
    counts: dict[Cell, int] = {
        ("openai", "gpt", "chat"): 120,
        ("openai", "gpt", "summary"): 4,
        ("openai", "gpt", "agent"): 15,
    }
    assert told(counts) == {("openai", "gpt", "chat"): 120, ("openai", "gpt", None): 19}


def test_small_cells_that_are_enough_together_leave_the_others_alone() -> None:
    counts: dict[Cell, int] = {
        ("p", "m", "chat"): 120,
        ("p", "m", "a"): 6,
        ("p", "m", "b"): 5,
        ("p", "n", "c"): 12,
        ("p", "n", "d"): 13,
    }
    assert told(counts) == {
        ("p", "m", "chat"): 120,
        ("p", "m", None): 11,
        ("p", "n", "c"): 12,
        ("p", "n", "d"): 13,
    }


def test_what_is_small_even_for_its_provider_goes_to_the_rest_of_the_day() -> None:
    counts: dict[Cell, int] = {("p", "m", "a"): 50, ("p", "m", "b"): 40, ("q", "m", "a"): 3}
    assert told(counts) == {("p", "m", "a"): 50, (None, None, None): 43}


def test_of_a_day_with_too_few_attempts_nothing_is_told() -> None:
    assert told({("p", "m", "a"): 5, ("q", "m", "a"): 5}) == {}
    assert told({("p", "m", "a"): 6, ("q", "m", "a"): 5}) == {(None, None, None): 11}


@given(counts=COUNTS)
def test_every_attempt_is_in_one_cell_of_eleven_or_the_day_is_too_small(counts: dict[Cell, int]) -> None:
    released = told(counts)
    assert all(attempts >= FEWEST for attempts in released.values())
    whole = sum(counts.values())
    assert sum(released.values()) == (whole if whole >= FEWEST else 0)
    assert set(labels(counts)) == (set(counts) if whole >= FEWEST else set())


@given(counts=COUNTS)
def test_a_cell_is_told_by_its_own_names_or_by_a_rest_it_belongs_to(counts: dict[Cell, int]) -> None:
    for cell, label in labels(counts).items():
        known = [name for name in label if name is not None]
        assert list(cell[: len(known)]) == known
        assert list(label) == [*known, *[None] * (3 - len(known))]


@given(counts=COUNTS)
def test_no_named_task_is_the_only_one_of_its_model(counts: dict[Cell, int]) -> None:
    tasks: dict[Cell, set[str]] = defaultdict(set)
    for cell in counts:
        tasks[cell[:2]].add(cell[2])
    for provider, model, task in labels(counts).values():
        if task is not None and provider is not None and model is not None:
            assert len(tasks[provider, model]) > 1


@given(counts=COUNTS)
def test_the_order_of_cells_changes_nothing(counts: dict[Cell, int]) -> None:
    turned = dict(reversed(list(counts.items())))
    assert labels(turned) == labels(counts)
