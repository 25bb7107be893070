"""The events of one trace as one sequence of bytes, and the rows that may stand beside its ciphertext.

    byte 0 or 1 (what follows is under zstd, after its length in 4 bytes, little-endian)
    varint number of strategies, 16 bytes each
    varint number of events; per event varints: step, phase, axis, operation, first and last layer, first and last head,
    head kind, position space, universe, members, encoding, base, fidelity, strategy, payload, payload2; each that may
    be missing is 0 or the value and 1. Of payloads it is the length; after the numbers come the payloads themselves,
    and before these, where fidelity has a share, its 8 bytes.

Enumerations are their place among the members. What a step accepted of its drafts tells a prompt from another, so the
rows beside the ciphertext have the events of the axis `emit` summed up; the ciphertext has each of them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import pyarrow as pa

from weighbridge.schemas.block import BlockName, open_block
from weighbridge.schemas.enumerations import (
    Axis,
    Encoding,
    Fidelity,
    HeadKind,
    Operation,
    Phase,
    PositionSpace,
)
from weighbridge.schemas.errors import ContractError
from weighbridge.schemas.keys import KeyScope
from weighbridge.schemas.position_sets import read_varint, varints
from weighbridge.schemas.state_event import StateEvent

TABLE: Final = "state_event"
KIND: Final = "traces"
NAME_BYTES: Final = 16
_PHASES, _AXES, _OPS, _ENCS = tuple(Phase), tuple(Axis), tuple(Operation), tuple(Encoding)
_HEADS, _SPACES, _FIDELITIES = tuple(HeadKind), tuple(PositionSpace), tuple(Fidelity)
_SHARE: Final = struct.Struct("<d")
_LEVEL: Final = 9


def pack_events(events: Sequence[StateEvent]) -> bytes:
    """The events of a trace, whose `seq` count from 0."""
    strategies = list(dict.fromkeys(event.strategy_id for event in events if event.strategy_id is not None))
    out = bytearray(varints([len(strategies)]))
    for strategy in strategies:
        out += bytes.fromhex(strategy)
    out += varints([len(events)])
    for seq, event in enumerate(events):
        ends = (event.layer_lo, event.layer_hi, event.head_lo, event.head_hi)
        if event.seq != seq:
            raise ContractError(f"state event {event.seq} stands at place {seq} of its trace; number them from 0")
        out += varints(
            (
                event.step, _PHASES.index(event.phase), _AXES.index(event.axis), _OPS.index(event.op),
                *(0 if end is None else end + 1 for end in ends),
                _HEADS.index(event.head_kind), _SPACES.index(event.pos_space), event.n_universe, event.n_members,
                _ENCS.index(event.enc), 0 if event.base_seq is None else event.base_seq + 1,
                _FIDELITIES.index(event.fidelity) * 2 + (event.sample_p is not None),
                0 if event.strategy_id is None else strategies.index(event.strategy_id) + 1,
                *(0 if part is None else len(part) + 1 for part in (event.payload, event.payload2)),
            )
        )  # fmt: skip
        if event.sample_p is not None:
            out += _SHARE.pack(event.sample_p)
        out += (event.payload or b"") + (event.payload2 or b"")
    squeezed = bytes(pa.Codec("zstd", compression_level=_LEVEL).compress(bytes(out), asbytes=True))
    return b"\x01" + len(out).to_bytes(4, "little") + squeezed if len(squeezed) + 4 < len(out) else b"\x00" + out


def unpack_events(data: bytes) -> list[StateEvent]:
    """The events of a trace.

    Raises:
        ContractError: the bytes are no trace.
    """
    try:
        if data[0]:
            size = int.from_bytes(data[1:5], "little")
            raw = bytes(pa.decompress(data[5:], size, codec="zstd", asbytes=True))
        else:
            raw = data[1:]
        return list(_events(raw))
    except (IndexError, ValueError, OSError, StopIteration, RuntimeError, struct.error):
        # The library's message may quote bytes, so it is not chained.
        raise ContractError("a block opened, but what it holds is no trace; capture it again") from None


def _events(raw: bytes) -> Iterator[StateEvent]:
    at = 0

    def number() -> int:
        nonlocal at
        value, at = read_varint(raw, at)
        return value

    def end() -> int | None:
        value = number()
        return value - 1 if value else None

    def taken(length: int | None) -> bytes | None:
        nonlocal at
        if length is None:
            return None
        at += length
        if at > len(raw):
            raise ValueError("cut")
        return raw[at - length : at]

    strategies = [(taken(NAME_BYTES) or b"").hex() for _ in range(number())]
    for seq in range(number()):
        step, phase, axis, op = number(), _PHASES[number()], _AXES[number()], _OPS[number()]
        layers, heads = (end(), end()), (end(), end())
        kind, space, universe, members = _HEADS[number()], _SPACES[number()], number(), number()
        encoding, base, honesty, strategy = _ENCS[number()], end(), number(), end()
        lengths = (end(), end())
        share = _SHARE.unpack(taken(_SHARE.size) or b"")[0] if honesty & 1 else None
        payload, payload2 = taken(lengths[0]), taken(lengths[1])
        yield StateEvent(
            seq, step, phase, axis, op, *layers, *heads, kind, space, universe, members, encoding, payload, payload2,
            base, _FIDELITIES[honesty >> 1], share, None if strategy is None else strategies[strategy],
        )  # fmt: skip


def shown_rows(events: Iterable[StateEvent]) -> list[dict[str, Any]]:
    """What of a trace may stand in clear in its table: counts of each event, those of the axis `emit` summed up."""
    rows: list[dict[str, Any]] = []
    sums: dict[tuple[Any, ...], dict[str, Any]] = {}
    for event in events:
        kind = (event.op, event.phase, event.pos_space, event.strategy_id)
        if event.axis is Axis.EMIT and kind in sums:
            sums[kind]["n_universe"] += event.n_universe
            sums[kind]["n_members"] += event.n_members
            continue
        row = event.columns() | {"payload": None, "payload2": None}
        if event.axis is Axis.EMIT:
            row |= {"enc": str(Encoding.COUNT), "base_seq": None, "fidelity": str(Fidelity.COUNTS)}
            sums[kind] = row
        rows.append(row)
    return rows


def block_name(key_name: str, block: str) -> BlockName:
    """What the block of a trace is bound to.

    Raises:
        ValueError: it is no key name.
    """
    scope = KeyScope.of(key_name)
    return BlockName(TABLE, scope.tenant, scope.bucket, scope.month, KIND, block)


def open_events(key_name: str, key: bytes, payload: bytes) -> list[StateEvent]:
    """The events of a trace, from the payload of its first row: 16 bytes of name, then the block.

    Raises:
        BlockError: it does not open under this key and name.
        ContractError: what it holds is no trace.
        ValueError: it is no key name.
    """
    name = block_name(key_name, payload[:NAME_BYTES].hex())
    return unpack_events(open_block(key, name, payload[NAME_BYTES:]))
