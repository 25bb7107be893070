"""Plans: what one store leaves in a slot, and what it leaves there when something does not fit half way."""

from __future__ import annotations

import math
import struct

import pytest

from weighbridge.capture.layout import COMMIT, HEAD, SLOT
from weighbridge.capture.plan import Scratch, ShapeError, compile_plan

KEY = bytes(32)
COUNTS = ("input_computed", "output_computed")
USAGE = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
HEAD_WORDS = tuple(range(100, 100 + len(HEAD)))


class Page:
    """Memory of four slots."""

    def __init__(self) -> None:
        self.raw = bytearray(4 * SLOT)
        self.words = memoryview(self.raw).cast("q")
        self.reals = memoryview(self.raw).cast("d")


def words_of(raw: bytearray, slot: int) -> tuple[int, ...]:
    return struct.unpack_from(f"<{SLOT // 8}q", raw, slot * SLOT)


def test_a_slot_holds_head_counts_leaves_and_its_offset_last_and_nothing_beside_it() -> None:
    page = Page()
    compile_plan(1, COUNTS, USAGE, KEY).store(page, 2 * SLOT, HEAD_WORDS, (-1, 5), USAGE)
    stored = words_of(page.raw, 2)
    assert stored[:15] == (*HEAD_WORDS, -1, 5, 7, 3, 10)
    assert set(stored[15:-1]) == {0}
    assert stored[-1] == 2 * SLOT
    assert not any(page.raw[: 2 * SLOT])
    assert not any(page.raw[3 * SLOT :])


def test_a_measure_is_stored_as_the_double_it_is() -> None:
    usage = {"prompt_tokens": 7, "cost": 0.1}
    plan = compile_plan(1, (), usage, KEY)
    page = Page()
    plan.store(page, 0, HEAD_WORDS, (), usage)
    at = 8 * (len(HEAD) + plan.kinds.index("d"))
    assert struct.unpack_from("<d", page.raw, at) == (0.1,)
    for wrong in (1, True, math.nan, math.inf, "0.1"):
        with pytest.raises((ShapeError, TypeError)):
            plan.store(Page(), 0, HEAD_WORDS, (), usage | {"cost": wrong})


def test_a_label_that_is_a_number_makes_no_plan() -> None:
    """The next answer of the same shape may have another number there, which no store would look at."""
    usage = {"promptTokensDetails": [{"modality": 1, "tokenCount": 28}]}
    with pytest.raises(ShapeError, match="a label that is a number"):
        compile_plan(1, (), usage, KEY)


@pytest.mark.parametrize(
    ("counts", "usage"),
    [
        ((1, 2), USAGE | {"total_tokens": 1 << 63}),
        ((1, 2), USAGE | {"total_tokens": 1.5}),
        ((1, 2), USAGE | {"total_tokens": "10"}),
        ((1, 2), USAGE | {"total_tokens": True}),
        ((1, 2), USAGE | {"more": 1}),
        ((1, 2), None),
        ((1, None), USAGE),
        ((1,), USAGE),
        ((1, 2, 3), USAGE),
        ("ab", USAGE),
    ],
)
def test_what_does_not_fit_is_never_committed(counts: tuple[int, ...], usage: object) -> None:
    page = Page()
    with pytest.raises((ShapeError, TypeError, ValueError, OverflowError)):
        compile_plan(1, COUNTS, USAGE, KEY).store(page, SLOT, HEAD_WORDS, counts, usage)
    assert not any(page.raw[SLOT + COMMIT : 2 * SLOT])
    assert not any(page.raw[:SLOT])


def test_a_head_of_another_length_is_not_committed() -> None:
    page = Page()
    with pytest.raises(ValueError, match="unpack"):
        compile_plan(1, COUNTS, USAGE, KEY).store(page, 0, HEAD_WORDS[:-1], (1, 2), USAGE)
    assert not any(page.raw)


def test_a_scratch_keeps_nothing_of_a_plan_that_failed_half_way() -> None:
    scratch = Scratch()
    with pytest.raises(ValueError, match="'q'"):
        compile_plan(1, COUNTS, USAGE, KEY).store(scratch, 0, HEAD_WORDS, (1, 2), USAGE | {"total_tokens": 1 << 63})
    assert any(scratch.raw)
    scratch.clear()
    compile_plan(2, (), None, KEY).store(scratch, 0, HEAD_WORDS, (), None)
    assert words_of(scratch.raw, 0) == (*HEAD_WORDS, *[0] * (SLOT // 8 - len(HEAD)))
