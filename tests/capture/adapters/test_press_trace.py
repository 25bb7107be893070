"""What a press leaves out of attention, by numbers worked out by hand; no press is needed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from weighbridge.capture.adapters import kvpress
from weighbridge.capture.adapters._generate_reading import whole
from weighbridge.capture.adapters._press_trace import Layer, PressTrace
from weighbridge.schemas.parts import Parallel, Part

torch = pytest.importorskip("torch")


def mask(*entries: tuple[int, int, int]) -> list[Any]:
    return [torch.tensor(part) for part in zip(*entries, strict=True)]


def test_each_position_computed_under_a_mask_leaves_out_what_was_masked_then() -> None:
    layer = Layer()
    layer.wrote(torch.zeros(2, 2, 6, 4), 6)
    first = mask((0, 0, 1), (0, 1, 2), (1, 0, 3))
    layer.masks(first)
    assert [layer.masked_reads(row) for row in (0, 1)] == [0, 0], "the pass before it read everything"
    layer.wrote(torch.zeros(2, 2, 9, 4), 3)
    assert [layer.masked_reads(row) for row in (0, 1)] == [6, 3], "three queries, each without what is masked"
    layer.masks(first)
    layer.went_on(1)
    assert [layer.masked_reads(row) for row in (0, 1)] == [8, 4]
    layer.masks(mask((0, 0, 1), (0, 1, 2), (1, 0, 3), (1, 1, 3), (1, 1, 4)))
    assert [layer.masked_reads(row) for row in (0, 1)] == [8, 4], "what is masked now was read before"
    layer.went_on(1)
    assert [layer.masked_reads(row) for row in (0, 1)] == [10, 7]


def test_nothing_is_left_out_where_nothing_is_masked() -> None:
    layer = Layer()
    layer.wrote(torch.zeros(1, 2, 6, 4), 6)
    layer.went_on(1)
    assert layer.masked_reads(0) == 0


@pytest.mark.parametrize("kind", list(Parallel))
def test_one_of_several_processes_does_not_tell_what_a_press_left_in_all_of_them(kind: Parallel) -> None:
    counts = {"attended": 3, "attended_dense": 4, "kv_kept": 5}
    several, alone = (Part(kind=kind, rank=0, world=world, group="g") for world in (2, 1))
    known = counts if kind is Parallel.DATA else {"attended_dense": 4}
    assert whole(counts, [[PressTrace()]], several) == known
    assert whole(counts, [[PressTrace()]], alone) == whole(counts, [[]], alone) == counts
    # A stage has layers of its own, with a press or without one.
    assert whole(counts, [[]], several) == (known if kind is Parallel.PIPELINE else counts)
    assert whole(counts, [[PressTrace()]], None) == counts


def test_what_a_quantised_cache_has_not_packed_yet_is_not_taken_for_the_whole() -> None:
    module = SimpleNamespace(layer_idx=0)
    held = SimpleNamespace(keys=torch.zeros(1, 2, 3, 4), values=torch.zeros(1, 2, 3, 4))
    cache = {"past_key_values": SimpleNamespace(layers=[held])}
    assert kvpress._cache_layer(module, cache) is held
    held._quantize = len
    assert kvpress._cache_layer(module, cache) is None
