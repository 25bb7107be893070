"""The token lattice: cells are disjoint, exclusive counts follow by subtraction, and nothing is clamped."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weighbridge.schemas.enumerations import Direction, Modality, TokenClass
from weighbridge.schemas.lattice import (
    CELLS,
    CROSSED_CELLS,
    ENGINE_OUTPUT_CLASSES,
    INPUT_CLASSES,
    OUTPUT_CLASSES,
    REPORTED_CLASSES,
    Unit,
    direction_of,
    exclusive,
)
from weighbridge.schemas.tables import PRICED_AMOUNT, READING

INPUT = Unit(Direction.INPUT)
OUTPUT = Unit(Direction.OUTPUT)
CACHED = Unit(Direction.INPUT, frozenset({TokenClass.CACHE_READ}))
AUDIO = Unit(Direction.INPUT, modalities=frozenset({Modality.AUDIO}))
CACHED_AUDIO = Unit(Direction.INPUT, frozenset({TokenClass.CACHE_READ}), frozenset({Modality.AUDIO}))
REASONING = Unit(Direction.OUTPUT, frozenset({TokenClass.REASONING}))


def test_every_class_travels_one_way() -> None:
    assert [c for c in TokenClass if direction_of(c) is Direction.INPUT] == list(INPUT_CLASSES)
    assert [c for c in TokenClass if direction_of(c) is Direction.OUTPUT] == list(ENGINE_OUTPUT_CLASSES)
    assert (*INPUT_CLASSES, *OUTPUT_CLASSES) == REPORTED_CLASSES
    assert len(REPORTED_CLASSES) == 7
    assert TokenClass.OUTPUT_WITHHELD not in REPORTED_CLASSES


def test_cells_have_a_column_each() -> None:
    names = [cell.name for cell in CELLS]
    assert len(set(names)) == len(names) == 7 + 9
    assert set(names) <= set(READING.names)
    assert {cell.name for cell in CROSSED_CELLS} == {
        f"{base}_{split}"
        for base in ("input_uncached", "cache_read", "output_visible")
        for split in ("audio", "image", "video")
    }
    assert {f"amount_{name}" for name in REPORTED_CLASSES} <= set(PRICED_AMOUNT.names)


def test_a_unit_contains_what_it_counts() -> None:
    assert INPUT.contains(CACHED)
    assert INPUT.contains(CACHED_AUDIO)
    assert CACHED.contains(CACHED_AUDIO)
    assert AUDIO.contains(CACHED_AUDIO)
    assert not CACHED.contains(AUDIO)
    assert not OUTPUT.contains(CACHED)
    assert len(INPUT.cells()) + len(OUTPUT.cells()) == len(CELLS)
    assert not INPUT.cells() & OUTPUT.cells()


def test_cached_is_taken_out_of_input_and_reasoning_out_of_output() -> None:
    """100 input tokens of which 64 were cached; 50 output tokens of which 20 were reasoning."""
    left = exclusive(
        {"prompt": (INPUT, 100), "cached": (CACHED, 64), "completion": (OUTPUT, 50), "thought": (REASONING, 20)}
    )
    assert left == {"prompt": 36, "cached": 64, "completion": 30, "thought": 20}


def test_a_chain_of_three_is_subtracted_one_step_each() -> None:
    """100 input, 40 of them cached, 15 of those cached audio: 60 + 25 + 15."""
    left = exclusive({"cached_audio": (CACHED_AUDIO, 15), "prompt": (INPUT, 100), "cached": (CACHED, 40)})
    assert left == {"cached_audio": 15, "prompt": 60, "cached": 25}


def test_a_contradiction_stands_as_a_negative_remainder() -> None:
    assert exclusive({"prompt": (INPUT, 10), "cached": (CACHED, 12)}) == {"prompt": -2, "cached": 12}


def test_overlapping_figures_are_refused_with_their_overlap() -> None:
    with pytest.raises(ValueError, match=r"overlap: \['cache_read_audio'\]; give the figure for the overlap"):
        exclusive({"cached": (CACHED, 3), "audio": (AUDIO, 4)})
    with pytest.raises(ValueError, match="overlap"):
        exclusive({"one": (CACHED, 3), "two": (CACHED, 3)})


@given(st.integers(0, 2**62), st.integers(0, 2**62), st.integers(0, 2**62))
def test_the_parts_add_up_to_the_whole(prompt: int, cached: int, cached_audio: int) -> None:
    figures = {"prompt": (INPUT, prompt), "cached": (CACHED, cached), "cached_audio": (CACHED_AUDIO, cached_audio)}
    assert sum(exclusive(figures).values()) == prompt
    assert exclusive(dict(reversed(figures.items()))) == exclusive(figures)
