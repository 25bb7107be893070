"""Values that a press folds into those of survivors, by numbers worked out by hand; no press is needed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from weighbridge.capture.adapters._press_merges import merged, merging, noting, spreads
from weighbridge.capture.adapters._press_trace import Layer, PressTrace
from weighbridge.schemas.enumerations import Operation
from weighbridge.schemas.trace import Trace, merges, replay

torch = pytest.importorskip("torch")
ROWS = 6
# Of two heads: rows 5, 0 and 2 survive, and rows 1, 4 and 3 do. The others, in order, are added to these places.
SURVIVE = torch.tensor([[[5, 0, 2], [1, 4, 3]]])
PLACES = torch.tensor([[[1, 2, 0], [0, 0, 2]]])
WEIGHTS = torch.tensor([[[0.5, 0.0, 0.25], [0.1, 0.2, 0.0]]])
HELD = torch.tensor([[[10, 11, 12, 13, 14, 15], [20, 21, 22, 23, 24, 25]]])


def test_the_sum_of_weights_is_noted_and_that_of_values_is_not() -> None:
    watch = noting()()
    with watch:
        torch.zeros(1, 2, 3, 4).scatter_add_(2, PLACES[..., None].expand(-1, -1, -1, 4), torch.ones(1, 2, 3, 4))
        assert not watch.noted
        weights = WEIGHTS.clone()
        torch.zeros(1, 2, 3).scatter_add_(2, PLACES, weights)
        weights.zero_()  # what the press does afterwards changes nothing
    noted: Any = watch.noted
    assert torch.equal(noted[0], PLACES)
    assert torch.equal(noted[1], WEIGHTS)


def test_a_row_went_where_it_has_weight() -> None:
    merge = merged((PLACES, WEIGHTS), SURVIVE, HELD, ROWS)
    assert merge.maps(0) == [{11: 10, 14: 15}, {20: 21, 22: 21}]
    assert merge.count(0) == 4
    counted = merged((PLACES, WEIGHTS), SURVIVE, None, ROWS)
    assert (counted.count(0), counted.sources) == (4, None), "counts need no positions"


def test_what_went_is_told_apart_from_what_was_evicted() -> None:
    told = PressTrace()
    for layer in (0, 1):
        account = told.layers.setdefault(layer, Layer())
        account.wrote(torch.zeros(1, 2, ROWS, 4), ROWS)
        every = torch.arange(ROWS, dtype=torch.int32).expand(1, 2, ROWS)
        account.merged(merged((PLACES, WEIGHTS), SURVIVE, every, ROWS))
        account.lost(3, every.gather(2, SURVIVE))
    counts = told.counts()
    assert (counts["kv_appended"], counts["kv_merged"], counts["kv_evicted"], counts["kv_kept"]) == (24, 8, 4, 12)
    trace = Trace()
    told.add_to(trace)
    assert [event.op for event in trace.events] == [Operation.APPEND, Operation.MERGE, Operation.KEEP_ONLY]
    state = replay(trace.events)
    assert (state.contradictions, state.entries) == (0, 12)
    assert state.merged == {(layer, head): row for layer in (0, 1) for head, row in ((0, 0b100001), (1, 0b10))}
    assert merges(trace.events[1], {}) == {
        (layer, head): went for layer in (0, 1) for head, went in ((0, {1: 0, 4: 5}), (1, {0: 1, 2: 1}))
    }


def test_presses_that_merge_are_found_wherever_they_are() -> None:
    @dataclass
    class MergingPress:
        press: Any = None

    @dataclass
    class CAMPress:
        press: Any = None

    @dataclass
    class Around:
        presses: list[Any] = field(default_factory=list)

    inner = MergingPress()
    assert list(merging(Around([CAMPress(), Around([inner])]))) == [inner]
    assert list(merging(CAMPress())) == []
    assert [spreads(each) for each in (inner, CAMPress())] == [False, True]
