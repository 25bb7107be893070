"""A trace comes back from its block as it was, and what stands beside it in clear tells no series of steps."""

from __future__ import annotations

import random

import pytest

from weighbridge.schemas.enumerations import Axis, Fidelity, HeadKind, Operation, Phase, PositionSpace
from weighbridge.schemas.errors import ContractError
from weighbridge.schemas.trace import Rule, StateEvent, Strategy, Trace, row_of
from weighbridge.schemas.trace_block import pack_events, shown_rows, unpack_events

STRATEGY = Strategy("Sparse", "score", {"ratio": 0.5})


def trace() -> list[StateEvent]:
    draw, made = random.Random(2), Trace(STRATEGY.strategy_id)
    made.add(Axis.INPUT, Operation.DROP, [row_of([3, 4])], width=10, pos_space=PositionSpace.CHARS)
    kept = [row_of(draw.sample(range(300), 120)) for _ in range(8)]
    for step in (0, 9):
        made.add(
            Axis.STORE, Operation.KEEP_ONLY, kept, width=300, step=step, layers=(0, 3), heads=(0, 1),
            head_kind=HeadKind.KEY_VALUE,
        )  # fmt: skip
    made.add(Axis.STORE, Operation.MERGE, [0b110], width=300, layers=(1, 1), destinations=[{1: 0, 2: 7}])
    made.add(
        Axis.ATTEND,
        Operation.SELECT,
        Rule(4, 8),
        width=300,
        layers=(0, 0),
        sample_p=0.25,
        fidelity=Fidelity.SAMPLED_LAYERS,
    )
    for step, (drafted, accepted) in enumerate([(5, 5), (5, 0), (3, 2)]):
        for op, count in ((Operation.DRAFT, drafted), (Operation.ACCEPT, accepted)):
            made.add(
                Axis.EMIT, op, [row_of(range(count))], width=drafted, step=step, phase=Phase.VERIFY,
                pos_space=PositionSpace.DRAFT_NODE,
            )  # fmt: skip
    made.count(Axis.COMPUTE, Operation.SKIP, 7, 70, survivals=[1, 2, 0], layers=(2, 2))
    return made.events


def test_a_trace_comes_back() -> None:
    events = trace()
    assert unpack_events(pack_events(events)) == events
    assert unpack_events(pack_events([])) == []
    many = [*events[:1], *(StateEvent.from_columns(events[0].columns() | {"seq": n, "step": n}) for n in range(1, 400))]
    packed = pack_events(many)
    assert unpack_events(packed) == many
    assert len(packed) < 400 * 8


def test_a_small_trace_takes_few_bytes_beside_its_sets() -> None:
    events = trace()[:1]
    assert len(pack_events(events)) <= 16 + 24 + len(events[0].payload or b"")


@pytest.mark.parametrize("at", range(0, 60, 7))
def test_what_is_cut_or_changed_is_an_error_of_ours(at: int) -> None:
    packed = pack_events(trace())
    with pytest.raises(ContractError):
        unpack_events(packed[:at])
    plain = b"\x00" + bytes([255] * at)
    with pytest.raises(ContractError, match="no trace; capture it again"):
        unpack_events(plain)


def test_events_are_numbered_from_0() -> None:
    with pytest.raises(ContractError, match="number them from 0"):
        pack_events(trace()[1:])


def test_what_stands_in_clear_has_counts_and_no_set_and_no_series_of_steps() -> None:
    rows = shown_rows(trace())
    assert all(row["payload"] is None and row["payload2"] is None for row in rows)
    emitted = {row["op"]: (row["n_members"], row["n_universe"]) for row in rows if row["axis"] == "emit"}
    assert emitted == {"DRAFT": (13, 13), "ACCEPT": (7, 13)}
    assert [row["axis"] for row in rows] == ["input", "store", "store", "store", "attend", "emit", "emit", "compute"]
    assert len({row["seq"] for row in rows}) == len(rows)
