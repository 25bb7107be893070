"""What was left out of a prompt, and what was merged: places and counts, never a text."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weighbridge.capture.pruning import Merging, Pruning
from weighbridge.schemas.enumerations import Axis, Encoding, Operation, PositionSpace
from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.strategy import Strategy
from weighbridge.schemas.trace import fold, merges, positions, replay

HOW = Strategy("LeaveOut", "pruning", {"ratio": 0.5})


def kept_text(before: str, pruned: Pruning) -> str | None:
    return None if pruned.kept is None else "".join(before[low : high + 1] for low, high in pruned.kept)


@given(st.text("ab c\n", max_size=60), st.randoms(use_true_random=False))
def test_whatever_letters_are_left_out_what_was_kept_makes_the_shorter_text(before: str, draw: random.Random) -> None:
    after = "".join(letter for letter in before if draw.random() < 0.6)
    assert kept_text(before, Pruning.of_texts(before, after)) == after


def test_whole_words_are_found_as_such() -> None:
    before = "the cat said that a cat sat on the mat"
    pruned = Pruning.of_texts(before, "a cat sat mat", tokens_before=10, tokens_after=4, strategy=HOW)
    assert pruned.kept == ((18, 27), (35, 37))
    keep, drop = pruned.events()
    assert (keep.axis, keep.op, keep.pos_space) == (Axis.INPUT, Operation.KEEP, PositionSpace.CHARS)
    assert positions(keep, {}) == (*range(18, 28), *range(35, 38))
    assert (keep.enc, len(keep.payload or b"")) == (Encoding.RANGES, 6)
    assert (drop.op, drop.n_members, drop.n_universe, drop.pos_space) == (Operation.DROP, 6, 10, PositionSpace.PROMPT)
    assert {event.strategy_id for event in (keep, drop)} == {HOW.strategy_id}


@pytest.mark.parametrize(
    ("before", "after"), [("春眠不觉晓", "春不晓"), ("def f(x):\n    return x", "def f:return"), ("x", "")]
)
def test_texts_of_any_kind(before: str, after: str) -> None:
    assert kept_text(before, Pruning.of_texts(before, after)) == after


def test_a_text_that_was_rewritten_has_counts_only() -> None:
    pruned = Pruning.of_texts("the cat sat", "a dog", tokens_before=3, tokens_after=2)
    assert pruned.kept is None
    assert [event.op for event in pruned.events()] == [Operation.DROP]


@pytest.mark.parametrize(
    ("kept", "counts", "cure"),
    [
        (((0, 3), (3, 5)), (None, None), "do not overlap"),
        (((4, 3),), (None, None), "ranges are inclusive"),
        (((0, 10),), (None, None), "of 10 places"),
        (((0, 3),), (3, 4), "count both by one tokenizer"),
    ],
)
def test_what_cannot_be_is_refused(
    kept: tuple[tuple[int, int], ...], counts: tuple[int | None, int | None], cure: str
) -> None:
    with pytest.raises(ConfigError, match=cure):
        Pruning(10, kept, *counts)


def test_merges_hold_from_their_layer_on() -> None:
    merging = Merging(3, 6, ((0, {1: 0, 4: 5}), (2, {2: 3})), HOW)
    assert merging.left == 3
    events = merging.events()
    known = {event.seq: event for event in events}
    assert fold(events) == {(0, -1): (0, 2, 3, 5), (1, -1): (0, 2, 3, 5), (2, -1): (0, 3, 5)}
    assert merges(events[1], known) == {(layer, -1): {1: 0, 4: 5} for layer in range(3)}
    assert replay(events).merged == {(0, -1): 0b100001, (1, -1): 0b100001, (2, -1): 0b101001}
    assert replay(events).contradictions == 0


@pytest.mark.parametrize(
    ("merged", "cure"),
    [
        (((3, {1: 0}),), "layer 3 of 3"),
        (((0, {1: 0}), (1, {2: 1})), "is not there any more"),
        (((0, {1: 0}), (1, {1: 2})), "is not there any more"),
        (((0, {1: 6}),), "beyond the 6"),
    ],
)
def test_a_merge_that_cannot_be_is_refused(merged: tuple[tuple[int, dict[int, int]], ...], cure: str) -> None:
    with pytest.raises(ConfigError, match=cure):
        Merging(3, 6, merged)
