"""Traces come back as they were, in few bytes, and fold to what is live."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypedDict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weighbridge.schemas.enumerations import Axis, Encoding, Fidelity, HeadKind, Operation, Phase, PositionSpace
from weighbridge.schemas.errors import ContractError
from weighbridge.schemas.position_sets import pack_counts, pack_rows, unpack_counts, unpack_rows
from weighbridge.schemas.trace import (
    Key,
    Live,
    Rule,
    StateEvent,
    Strategy,
    Trace,
    fold,
    merges,
    over_budget,
    pack_positions,
    positions,
    positions_of,
    replay,
    row_of,
    rows,
    survival_events,
    survivals,
)


class Scope(TypedDict):
    """The (layer, head) an event covers."""

    layers: tuple[int, int]
    heads: tuple[int, int]
    head_kind: HeadKind


HEADS = Scope(layers=(0, 3), heads=(0, 7), head_kind=HeadKind.KEY_VALUE)
ONE = Scope(layers=(0, 0), heads=(0, 0), head_kind=HeadKind.KEY_VALUE)


def by_seq(events: Sequence[StateEvent]) -> dict[int, StateEvent]:
    return {event.seq: event for event in events}


def size(event: StateEvent) -> int:
    return len(event.payload or b"") + len(event.payload2 or b"")


def heavy_hitters(seed: int, width: int, count: int, kept: int) -> list[int]:
    """Per head the best of scores that heads share in part and that are pooled over 7 neighbours, as SnapKV's are."""
    draw = random.Random(seed)
    shared = [draw.gauss(0, 1) for _ in range(width)]
    out = []
    for _ in range(count):
        own = [0.7 * common + draw.gauss(0, 1) for common in shared]
        scores = [max(own[max(0, at - 3) : at + 4]) + draw.random() / 8 for at in range(width)]
        best = sorted(range(width), key=scores.__getitem__, reverse=True)[:kept]
        out.append(row_of(best))
    return out


@given(st.integers(1, 6), st.data())
@settings(max_examples=80, deadline=None)
def test_sets_of_any_shape_come_back(count: int, data: st.DataObject) -> None:
    width = data.draw(st.integers(1, 300))
    row = st.one_of(st.integers(0, (1 << width) - 1), st.sampled_from([0, 1, (1 << width) - 1, 1 << width - 1]))
    sets = data.draw(st.lists(st.lists(row, min_size=count, max_size=count), min_size=1, max_size=4))
    trace = Trace()
    for members in sets:
        trace.add(
            Axis.STORE, Operation.KEEP_ONLY, members, width=width, layers=(2, 2), heads=(0, count - 1),
            head_kind=HeadKind.KEY_VALUE,
        )  # fmt: skip
    known = by_seq([StateEvent.from_columns(event.columns()) for event in trace.events])
    for event, members in zip(trace.events, sets, strict=True):
        assert rows(known[event.seq], known) == {(2, head): members[head] for head in range(count)}
        assert survivals(event, known) == tuple(sum(row >> p & 1 for row in members) for p in range(width))
        common = members[0]
        for other in members:
            common &= other
        assert positions(event, known) == tuple(p for p in range(width) if common >> p & 1)


@pytest.mark.parametrize(
    ("members", "universe", "encoding", "most"),
    [
        (range(2048), 2048, Encoding.ALL, 0),
        ([*range(4), *range(1028, 2048)], 2048, Encoding.RANGES, 9),
        ([], 2048, Encoding.RANGES, 2),
        (range(0, 2048, 2), 2048, Encoding.BITMAP_Z, 40),
        (random.Random(3).sample(range(2048), 1024), 2048, Encoding.BITMAP_Z, 257),
    ],
)
def test_the_smallest_encoding_is_chosen(members: Sequence[int], universe: int, encoding: Encoding, most: int) -> None:
    found, payload = pack_positions(members, universe)
    assert found is encoding
    assert len(payload or b"") <= most


def test_sizes_of_a_trace_of_2048_positions_by_32_heads() -> None:
    sinks = Trace()
    sinks.add(Axis.STORE, Operation.KEEP_ONLY, [row_of([*range(4), *range(1028, 2048)])], width=2048, **HEADS)
    assert sum(map(size, sinks.events)) <= 16
    scored = Trace()
    scored.add(Axis.STORE, Operation.KEEP_ONLY, heavy_hitters(1, 2048, 32, 1024), width=2048, **HEADS)
    assert sum(map(size, scored.events)) <= 7_500
    assert sum(map(size, survival_events(scored.events))) <= 1_500


@pytest.mark.parametrize("width", [100, 100_000])
def test_a_rule_takes_the_same_few_bytes_for_any_number_of_tokens(width: int) -> None:
    trace = Trace()
    event = trace.add(Axis.STORE, Operation.KEEP_ONLY, Rule(4, 60, standing=True), width=width, **HEADS)
    assert (size(event), event.n_members, event.fidelity) == (3, 32 * 64, Fidelity.RULE)
    assert positions(event, {}) == (*range(4), *range(width - 60, width))


def test_a_rule_keeps_all_where_there_is_no_more() -> None:
    event = Trace().add(Axis.ATTEND, Operation.SELECT, Rule(4, 60), width=64)
    assert positions(event, {}) == tuple(range(64))


def test_equal_sets_are_stored_once() -> None:
    trace, kept = Trace(), random.Random(5).sample(range(4096), 1000)
    for layer in range(8):
        trace.add(Axis.ATTEND, Operation.SELECT, [row_of(kept)], width=4096, layers=(layer, layer))
    assert [event.base_seq for event in trace.events] == [None, *[0] * 7]
    assert [size(event) for event in trace.events[1:]] == [0] * 7
    known = by_seq(trace.events)
    assert all(positions(event, known) == tuple(sorted(kept)) for event in trace.events)


def test_steps_that_change_little_are_stored_as_differences() -> None:
    draw, trace, chosen = random.Random(6), Trace(), []
    row = row_of(draw.sample(range(4096), 1000))
    for step in range(70):
        chosen.append(row)
        trace.add(Axis.ATTEND, Operation.SELECT, [row], width=4096 + step, layers=(0, 0), step=step, phase=Phase.DECODE)
        row ^= 1 << draw.choice(positions_of(row)) | 1 << (4096 + step)
    known = by_seq(trace.events)
    assert [rows(event, known) for event in trace.events] == [{(0, -1): row} for row in chosen]
    assert sum(map(size, trace.events)) < 70 * 10 + 3 * 500
    assert max(sum(1 for _ in chain(event, known)) for event in trace.events) <= 33


def chain(event: StateEvent, known: dict[int, StateEvent]) -> Sequence[int]:
    out = [event.seq]
    while event.base_seq is not None:
        event = known[event.base_seq]
        out.append(event.seq)
    return out


@given(st.lists(st.integers(0, 70_000), max_size=300))
@settings(max_examples=40, deadline=None)
def test_counts_come_back(counts: list[int]) -> None:
    assert unpack_counts(pack_counts(counts), len(counts)) == tuple(counts)


def test_merges_come_back_and_what_was_merged_into_has_no_token() -> None:
    trace = Trace()
    maps = [{3: 2, 9: 0}, {1: 12, 4: 5, 5: 5}]
    trace.add(
        Axis.STORE,
        Operation.APPEND,
        [row_of(range(10))],
        width=10,
        layers=(0, 0),
        heads=(0, 1),
        head_kind=HeadKind.KEY_VALUE,
    )
    event = trace.add(
        Axis.STORE, Operation.MERGE, [row_of(row) for row in maps], width=10, layers=(0, 0), heads=(0, 1),
        head_kind=HeadKind.KEY_VALUE, destinations=maps,
    )  # fmt: skip
    assert merges(event, by_seq(trace.events)) == {(0, 0): maps[0], (0, 1): maps[1]}
    live = replay(trace.events)
    assert {key: positions_of(row) for key, row in live.merged.items()} == {(0, 0): (0, 2), (0, 1): (5, 12)}
    assert fold(trace.events) == {(0, 0): (0, 1, 2, 4, 5, 6, 7, 8), (0, 1): (0, 2, 3, 5, 6, 7, 8, 9, 12)}


def test_the_fold_is_what_a_set_per_head_comes_to() -> None:
    draw, trace = random.Random(11), Trace()
    expected: dict[Key, set[int]] = {(layer, head): set() for layer in range(2) for head in range(3)}
    scope = Scope(layers=(0, 1), heads=(0, 2), head_kind=HeadKind.KEY_VALUE)
    length = 40
    trace.add(Axis.STORE, Operation.APPEND, [row_of(range(length))], width=length, **scope)
    for live in expected.values():
        live |= set(range(length))
    for step in range(30):
        if draw.random() < 0.6:
            trace.add(Axis.STORE, Operation.APPEND, [1 << length], width=length + 1, step=step, **scope)
            for live in expected.values():
                live.add(length)
            length += 1
        elif draw.random() < 0.7:
            gone = {key: set(draw.sample(sorted(live), 2)) for key, live in expected.items()}
            trace.add(
                Axis.STORE, Operation.EVICT, [row_of(gone[key]) for key in expected], width=length, step=step, **scope
            )
            for key in expected:
                expected[key] -= gone[key]
        else:
            kept = {key: set(draw.sample(sorted(live), len(live) - 1)) for key, live in expected.items()}
            trace.add(
                Axis.STORE,
                Operation.KEEP_ONLY,
                [row_of(kept[key]) for key in expected],
                width=length,
                step=step,
                **scope,
            )
            expected.update(kept)
    assert fold(trace.events) == {key: tuple(sorted(live)) for key, live in expected.items()}
    state = replay(trace.events)
    assert (state.entries, state.contradictions) == (sum(map(len, expected.values())), 0)
    last = trace.events[-1]
    whole: dict[str, Any] = {"enc": Encoding.ALL, "payload": None, "base_seq": None, "n_members": last.n_universe}
    bad = replace(last, seq=99, op=Operation.APPEND, **whole)
    assert replay([*trace.events, bad]).contradictions == state.entries


def test_a_standing_rule_holds_after_each_append_and_one_that_was_applied_once_does_not() -> None:
    for standing, expected in ((True, (0, 1, 10, 11, 12)), (False, (0, 1, 7, 8, 9, 10, 11, 12))):
        trace = Trace()
        trace.add(Axis.STORE, Operation.APPEND, [row_of(range(10))], width=10, **ONE)
        trace.add(Axis.STORE, Operation.KEEP_ONLY, Rule(2, 3, standing), width=10, **ONE)
        trace.add(Axis.STORE, Operation.APPEND, [row_of(range(10, 13))], width=13, **ONE)
        assert fold(trace.events) == {(0, 0): expected}


def test_events_without_heads_cover_those_that_are_known() -> None:
    trace = Trace()
    trace.add(Axis.STORE, Operation.APPEND, [row_of(range(4))], width=4, layers=(0, 1))
    trace.add(
        Axis.STORE,
        Operation.EVICT,
        [0b0001, 0b0010],
        width=4,
        layers=(0, 0),
        heads=(0, 1),
        head_kind=HeadKind.KEY_VALUE,
    )
    trace.add(Axis.STORE, Operation.EVICT, [0b1000], width=4, layers=(0, 1))
    assert fold(trace.events) == {(0, 0): (1, 2), (0, 1): (0, 2), (1, -1): (0, 1, 2)}


def test_where_a_count_alone_is_kept_what_is_live_is_unknown_until_it_is_said() -> None:
    trace = Trace()
    trace.add(Axis.STORE, Operation.APPEND, [row_of(range(8))], width=8, **ONE)
    trace.count(Axis.STORE, Operation.EVICT, 3, 8, **ONE)
    assert (fold(trace.events), replay(trace.events).unknown) == ({}, {(0, 0)})
    trace.add(Axis.STORE, Operation.KEEP_ONLY, [0b11], width=8, **ONE)
    assert (fold(trace.events), replay(trace.events).unknown) == ({(0, 0): (0, 1)}, set())


def test_a_budget_is_tested_right_after_a_compression_only() -> None:
    trace = Trace()
    trace.add(Axis.STORE, Operation.APPEND, [row_of(range(20))], width=20, **ONE)
    trace.add(Axis.STORE, Operation.KEEP_ONLY, [row_of(range(8))], width=20, **ONE)
    trace.add(Axis.STORE, Operation.APPEND, [1 << 20], width=21, **ONE)
    trace.add(Axis.STORE, Operation.EVICT, [1 << 3], width=21, **ONE)
    assert (over_budget(trace.events, 8), over_budget(trace.events, 7)) == ([], [1, 3])


def test_other_axes_leave_the_store_as_it_is() -> None:
    live = Live()
    trace = Trace()
    trace.add(Axis.INPUT, Operation.DROP, [0b1], width=4, pos_space=PositionSpace.PROMPT)
    trace.add(Axis.ATTEND, Operation.MASK, [0b1], width=4, layers=(0, 0))
    trace.add(Axis.STORE, Operation.DEMOTE, [0b1], width=4, layers=(0, 0))
    for event in trace.events:
        live.apply(event)
    assert live.sets == {}


EVENT = StateEvent(
    3, 0, Phase.PREFILL, Axis.STORE, Operation.KEEP_ONLY, 0, 3, 0, 7, HeadKind.KEY_VALUE, PositionSpace.SEQUENCE,
    64, 64, Encoding.ALL,
)  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "cure"),
    [
        ({"op": Operation.SELECT}, "no operation of the axis store; use KEEP_ONLY"),
        ({"axis": "store"}, "no Axis; use one of its members"),
        ({"n_members": 65}, "members are at most the universe"),
        ({"n_members": -1}, "members are at most the universe"),
        ({"n_members": 63}, "use RANGES or COUNT"),
        ({"n_universe": 65, "n_members": 65}, "rows of one event have equally many"),
        ({"layer_hi": None}, "give both, or neither"),
        ({"layer_lo": 4}, "both ends are inclusive"),
        ({"head_kind": HeadKind.NONE}, "give heads and what they count, or neither"),
        ({"layer_lo": None, "layer_hi": None}, "say of which layers they are"),
        ({"enc": Encoding.RANGES}, "use COUNT where only a count is known"),
        ({"enc": Encoding.DELTA}, "base_seq goes with DELTA"),
        ({"base_seq": 1}, "base_seq goes with DELTA"),
        ({"enc": Encoding.DELTA, "base_seq": 3}, "refer to an earlier event"),
        ({"payload2": b"\x00"}, "destinations without a MERGE"),
        ({"sample_p": 0.0}, "above 0 and at most 1"),
        ({"fidelity": Fidelity.SAMPLED_LAYERS}, "give sample_p"),
        ({"strategy_id": "x"}, "take Strategy.strategy_id"),
        ({"seq": -1}, "0 to 2147483647 is allowed"),
    ],
)  # fmt: skip
def test_a_row_that_contradicts_itself_is_refused_with_the_cure(changed: dict[str, Any], cure: str) -> None:
    with pytest.raises(ContractError, match=cure):
        replace(EVENT, **changed)


@pytest.mark.parametrize("encoding", [Encoding.RANGES, Encoding.BITMAP_Z, Encoding.RULE])
def test_damaged_payloads_are_an_error_of_ours(encoding: Encoding) -> None:
    draw = random.Random(str(encoding))
    for _ in range(200):
        raw = draw.randbytes(draw.randrange(9))
        event = replace(EVENT, enc=encoding, payload=raw, n_members=63)
        with pytest.raises(ContractError):
            rows(event, {})


def test_a_missing_base_is_told() -> None:
    with pytest.raises(ContractError, match="its base 1 is missing; read them all"):
        rows(replace(EVENT, enc=Encoding.DELTA, base_seq=1), {})


def test_positions_out_of_range_are_refused() -> None:
    with pytest.raises(ContractError, match="below 0"):
        pack_positions([-1], 8)
    with pytest.raises(ContractError, match="beyond the 8 there are"):
        pack_positions([8], 8)
    with pytest.raises(ContractError, match="2 sets for 32 rows"):
        Trace().add(Axis.STORE, Operation.EVICT, [1, 1], width=4, **HEADS)


def test_a_strategy_is_named_by_what_it_is() -> None:
    press = Strategy("SnapKVPress", "score", {"compression_ratio": 0.5, "window_size": 64}, library="kvpress", layers=4)
    same = Strategy("SnapKVPress", "score", {"window_size": 64, "compression_ratio": 0.5}, library="kvpress", layers=4)
    other = Strategy("SnapKVPress", "score", {"window_size": 32, "compression_ratio": 0.5}, library="kvpress", layers=4)
    assert press.strategy_id == same.strategy_id != other.strategy_id
    assert Strategy.from_columns(press.columns()) == press
    with pytest.raises(ContractError, match="ingest the segment again"):
        Strategy.from_columns(press.columns() | {"name": "TOVAPress"})


@pytest.mark.parametrize("value", ["a sentence of words", [1], float("nan"), {"a": 1}])
def test_a_strategy_has_no_room_for_text(value: Any) -> None:
    with pytest.raises(ContractError, match="give a hash of it") as raised:
        Strategy("x", "score", {"p": value})
    assert "sentence" not in str(raised.value)


@pytest.mark.parametrize(
    ("heads", "payload"),
    [
        ([[p for p in range(301) if p % (3 + h) < 2] for h in range(4)],
         "0128b52ffd2097e5000078dbb66d76668e31c618638c611886080400af3350f0d225b18e1b02"),
        ([[p for p in range(301) if (p * p % 97 % 11 * (2 * h + 3) >> 1) & 1] for h in range(8)],
         "0328b52ffd602d005d010012460807e00f1062086429515ab89f42813fc7f4047b9c36ed101fd3fc4281f62ea5450401006192a44214"),
    ],
)  # fmt: skip
def test_bitmaps_that_were_written_before_are_read(heads: list[list[int]], payload: str) -> None:
    sets = tuple(map(row_of, heads))
    assert unpack_rows(Encoding.BITMAP_Z, bytes.fromhex(payload), len(sets), 301) == sets
    assert pack_rows(sets, 301) != (Encoding.BITMAP_Z, None)
    assert len(pack_rows(sets, 301)[1] or b"") <= len(bytes.fromhex(payload)), "and no larger than they were"


def test_a_set_that_changes_little_is_its_difference_and_one_that_becomes_simple_is_whole() -> None:
    draw = random.Random(8)
    kept = heavy_hitters(2, 512, 32, 256)
    changed = [row ^ 1 << draw.randrange(512) for row in kept]
    trace = Trace()
    for members in (kept, changed, [row_of(range(400))] * 32, kept):
        trace.add(Axis.STORE, Operation.KEEP_ONLY, members, width=512, **HEADS)
    first, second, third, again = trace.events
    assert (second.enc, second.base_seq) == (Encoding.DELTA, 0)
    assert size(second) * 4 < size(first)
    assert (third.enc, size(third)) == (Encoding.RANGES, 5)
    assert (again.enc, again.base_seq, size(again)) == (Encoding.DELTA, 0, 0)
    found = rows(second, by_seq(trace.events))
    assert found is not None
    assert list(found.values()) == changed
