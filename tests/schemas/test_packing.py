"""Ids come back as they were, by both methods; damage is an error of ours and never other ids in silence."""

from __future__ import annotations

import array
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weighbridge.schemas.block import BlockError
from weighbridge.schemas.packing import PLANES, RANKS, pack_planes, pack_ranks, unpack

# Few and many different ids, the ends of the range, and enough distinct ones for ranks of one, two and six bytes.
IDS = st.lists(st.one_of(st.integers(0, 40), st.integers(0, 2**32 - 1)), max_size=400)


@given(IDS)
@settings(max_examples=60, deadline=None)
def test_ids_come_back(ids: list[int]) -> None:
    raw = array.array("I", ids).tobytes()
    assert unpack(pack_planes(raw)) == raw
    assert unpack(pack_ranks(raw)) == raw


@pytest.mark.parametrize("distinct", [191, 192, 193, 448, 16_319, 16_320, 16_321, 40_000])
def test_every_width_of_a_rank_comes_back(distinct: int) -> None:
    draw = random.Random(distinct)
    ids = [draw.randrange(2**32) for _ in range(distinct)]
    raw = array.array("I", [*ids, *ids[: distinct // 2]]).tobytes()
    packed = pack_ranks(raw)
    assert packed[0] == RANKS
    assert unpack(packed) == raw


def test_ranks_take_fewer_bytes_than_planes_where_ids_are_scattered() -> None:
    draw = random.Random(4)
    words = [draw.randrange(128_000) for _ in range(3_000)]
    ids = array.array("I", draw.choices(words, [1 / (rank + 1) for rank in range(3_000)], k=60_000)).tobytes()
    planes, ranks = pack_planes(ids), pack_ranks(ids)
    assert planes[0] == PLANES
    assert len(ranks) < 0.75 * len(planes) < len(ids)


@pytest.mark.parametrize("packed", [b"", b"\x00", b"\x03rest"])
def test_an_unknown_method_says_to_upgrade(packed: bytes) -> None:
    with pytest.raises(BlockError, match="later version; upgrade"):
        unpack(packed)


@pytest.mark.parametrize("pack", [pack_planes, pack_ranks])
def test_a_packed_block_that_was_cut_is_an_error(pack: object) -> None:
    packed = (pack_ranks if pack is pack_ranks else pack_planes)(array.array("I", range(1000)).tobytes())
    for size in (1, 9, 20, 40, len(packed) // 2):
        with pytest.raises(BlockError, match="no packed run"):
            unpack(packed[:size])
