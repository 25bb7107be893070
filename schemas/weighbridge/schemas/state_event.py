"""Level 3: what a sparse strategy did to a set of positions, as one row of the table `state_event`.

Counts of an event are summed over its rows, one for each (layer, head) of its scope: an event over 4 layers of 2 heads
and 256 positions has a universe of 2,048. An event without heads has a row per layer, one without layers a single row.
The rows have the key (layer, head), with -1 for what the event does not tell apart. A MERGE names its sources as
members; their destinations, in the order of rows and ascending sources, are varints of twice the step, less 1 where it
goes back. A destination beyond the positions there are is synthetic. What was merged into has no token id any more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

from weighbridge.schemas import position_sets as sets
from weighbridge.schemas.enumerations import (
    OPERATIONS_OF_AXIS,
    Axis,
    Encoding,
    Fidelity,
    HeadKind,
    Operation,
    Phase,
    PositionSpace,
)
from weighbridge.schemas.errors import ContractError
from weighbridge.schemas.strategy import HEX32

Key = tuple[int, int]
_INT32: Final = (1 << 31) - 1
_INT64: Final = (1 << 63) - 1
_PAYLOAD: Final = (Encoding.RULE, Encoding.RANGES, Encoding.BITMAP_Z, Encoding.DIGEST)
_ENUMERATIONS: Final[Mapping[str, Any]] = {
    "phase": Phase, "axis": Axis, "op": Operation, "head_kind": HeadKind, "pos_space": PositionSpace,
    "enc": Encoding, "fidelity": Fidelity,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class StateEvent:
    """One event. The attributes are the columns of the table, with what they mean there.

    Raises:
        ContractError: the row contradicts itself; the message says how to write it.
    """

    seq: int
    step: int
    phase: Phase
    axis: Axis
    op: Operation
    layer_lo: int | None
    layer_hi: int | None
    head_lo: int | None
    head_hi: int | None
    head_kind: HeadKind
    pos_space: PositionSpace
    n_universe: int
    n_members: int
    enc: Encoding
    payload: bytes | None = None
    payload2: bytes | None = None
    base_seq: int | None = None
    fidelity: Fidelity = Fidelity.EXACT
    sample_p: float | None = None
    strategy_id: str | None = None

    def __post_init__(self) -> None:
        """See that it says one thing."""
        for name, values in _ENUMERATIONS.items():
            if not isinstance(getattr(self, name), values):
                raise ContractError(f"{self._named} has a {name} that is no {values.__name__}; use one of its members")
        if self.op not in OPERATIONS_OF_AXIS[self.axis]:
            allowed = ", ".join(OPERATIONS_OF_AXIS[self.axis])
            raise ContractError(f"{self._named}: {self.op} is no operation of the axis {self.axis}; use {allowed}")
        self._check_scope()
        self._check_set()

    @property
    def _named(self) -> str:
        return f"state event {self.seq}"

    @property
    def keys(self) -> tuple[Key, ...]:
        """The (layer, head) of each row, layers outermost."""
        layers = _range(self.layer_lo, self.layer_hi)
        heads = _range(self.head_lo, self.head_hi)
        return tuple((layer, head) for layer in layers for head in heads)

    @property
    def rows(self) -> int:
        """How many rows it covers."""
        return len(_range(self.layer_lo, self.layer_hi)) * len(_range(self.head_lo, self.head_hi))

    @property
    def width(self) -> int:
        """The positions of one row."""
        return self.n_universe // self.rows

    def _check_scope(self) -> None:
        for name in ("seq", "step"):
            if not 0 <= getattr(self, name) <= _INT32:
                raise ContractError(f"{self._named}: {name} is {getattr(self, name)}; 0 to {_INT32} is allowed")
        for what, low, high in (("layer", self.layer_lo, self.layer_hi), ("head", self.head_lo, self.head_hi)):
            if (low is None) != (high is None):
                raise ContractError(f"{self._named}: a {what} range has one end; give both, or neither")
            if low is not None and high is not None and not 0 <= low <= high <= _INT32:
                raise ContractError(f"{self._named}: {what}s {low} to {high} are no range; both ends are inclusive")
        if (self.head_kind is HeadKind.NONE) != (self.head_lo is None):
            raise ContractError(f"{self._named}: give heads and what they count, or neither (head_kind none)")
        if self.head_lo is not None and self.layer_lo is None:
            raise ContractError(f"{self._named}: heads without layers; say of which layers they are")

    def _check_set(self) -> None:
        if not 0 <= self.n_members <= self.n_universe <= _INT64:
            raise ContractError(
                f"{self._named}: {self.n_members} members of {self.n_universe}; members are at most the universe, and "
                "both are summed over the rows"
            )
        if self.n_universe % self.rows and self.enc not in (Encoding.COUNT, Encoding.DIGEST):
            raise ContractError(
                f"{self._named}: {self.n_universe} positions over {self.rows} rows; rows of one event have equally many"
            )
        if self.enc is Encoding.ALL and (self.payload is not None or self.n_members != self.n_universe):
            raise ContractError(f"{self._named}: ALL has every member and no payload; use RANGES or COUNT")
        if self.enc in _PAYLOAD and self.payload is None:
            raise ContractError(f"{self._named}: {self.enc} without a payload; use COUNT where only a count is known")
        if (self.enc is Encoding.DELTA) != (self.base_seq is not None):
            raise ContractError(f"{self._named}: base_seq goes with DELTA, and with nothing else")
        if self.base_seq is not None and not 0 <= self.base_seq < self.seq:
            raise ContractError(f"{self._named}: its base {self.base_seq} is not before it; refer to an earlier event")
        if self.payload2 is not None and self.op is not Operation.MERGE:
            raise ContractError(f"{self._named}: destinations without a MERGE; leave payload2 empty")
        if self.sample_p is not None and not 0 < self.sample_p <= 1:
            raise ContractError(f"{self._named}: a share of {self.sample_p}; above 0 and at most 1 is allowed")
        if self.fidelity is Fidelity.SAMPLED_LAYERS and self.sample_p is None:
            raise ContractError(f"{self._named}: sampled layers without their share; give sample_p")
        if self.strategy_id is not None and not HEX32.fullmatch(self.strategy_id):
            raise ContractError(f"{self._named}: its strategy is no 32 hexadecimal digits; take Strategy.strategy_id")

    def columns(self) -> dict[str, Any]:
        """The row by column, enumerations as text."""
        row = {name: getattr(self, name) for name in _COLUMNS}
        for name in _ENUMERATIONS:
            row[name] = row[name].value
        return row

    @classmethod
    def from_columns(cls, row: Mapping[str, Any]) -> StateEvent:
        """The event of a row by column; other columns are left out.

        Raises:
            ContractError: a column is missing, a word is unknown, or the row contradicts itself.
        """
        try:
            known = {name: row[name] for name in _COLUMNS}
            known |= {name: values(known[name]) for name, values in _ENUMERATIONS.items()}
        except (KeyError, ValueError):
            raise ContractError(
                f"a state event lacks a column, or has a word this version does not know; the columns are "
                f"{', '.join(_COLUMNS)}. Upgrade weighbridge on this host"
            ) from None
        return cls(**known)


_COLUMNS: Final = tuple(field.name for field in fields(StateEvent))


def _range(low: int | None, high: int | None) -> range:
    return range(-1, 0) if low is None or high is None else range(low, high + 1)


def rows(event: StateEvent, events: Mapping[int, StateEvent]) -> dict[Key, int] | None:
    """The members as a set per (layer, head); bit p of a set is position p. None where only counts are kept.

    Args:
        event: the event.
        events: the events of its attempt by `seq`; its bases are looked up there.

    Raises:
        ContractError: a payload cannot be read, holds another number of members than stated, or its base is missing.
    """
    found = _rows(event, events)
    return None if found is None else dict(zip(event.keys, found, strict=True))


def _rows(event: StateEvent, events: Mapping[int, StateEvent]) -> sets.Rows | None:
    # Bases are earlier events, so the chain ends; it is walked in a loop because one per step may be long.
    chain = [event]
    while chain[-1].base_seq is not None:
        base = events.get(chain[-1].base_seq)
        if base is None:
            raise ContractError(f"state event {chain[-1].seq}: its base {chain[-1].base_seq} is missing; read them all")
        chain.append(base)
    last = chain.pop()
    if last.enc in (Encoding.COUNT, Encoding.DIGEST):
        return None
    found = sets.unpack_rows(last.enc, last.payload, last.rows, last.width)
    for later in reversed(chain):
        if len(found) == 1:
            found = found * later.rows
        if len(found) != later.rows or any(row >> later.width for row in found):
            raise ContractError(f"state event {later.seq}: its base covers other rows; refer to one of its own scope")
        found = sets.unpack_difference(later.payload, found, later.width)
    if sum(row.bit_count() for row in found) != event.n_members:
        raise ContractError(f"state event {event.seq} states another number of members than it holds; capture it again")
    return found


def positions(event: StateEvent, events: Mapping[int, StateEvent]) -> tuple[int, ...] | None:
    """The positions that are members in *every* row of the event, ascending; None where only counts are kept.

    Of an event with one row, or whose rows are equal, these are its members. Where heads differ, `rows` tells them
    apart and `survivals` counts them.

    Raises:
        ContractError: as `rows`.
    """
    found = _rows(event, events)
    if found is None:
        return None
    common = found[0]
    for row in found[1:]:
        common &= row
    return sets.positions_of(common)


def survivals(event: StateEvent, events: Mapping[int, StateEvent]) -> tuple[int, ...] | None:
    """In how many rows each position is a member (level 2 keeps this and no more); None where that is not known.

    Raises:
        ContractError: as `rows`.
    """
    if event.enc is Encoding.COUNT and event.payload is not None:
        return sets.unpack_counts(event.payload, event.width)
    found = _rows(event, events)
    return None if found is None else sets.counts_of(found, event.width)


def merges(event: StateEvent, events: Mapping[int, StateEvent]) -> dict[Key, dict[int, int]] | None:
    """Where each source of a MERGE went, per (layer, head); None where that is not kept.

    Raises:
        ContractError: as `rows`, or there are not as many destinations as sources.
    """
    found = rows(event, events)
    if found is None or event.payload2 is None:
        return None
    steps = list(sets.from_varints(event.payload2))
    if len(steps) != event.n_members:
        raise ContractError(f"state event {event.seq}: not as many destinations as sources; capture it again")
    out, at = {}, 0
    for key, row in found.items():
        sources = sets.positions_of(row)
        here = steps[at : at + len(sources)]
        out[key] = {
            s: s + (step >> 1 if not step & 1 else -(step + 1 >> 1)) for s, step in zip(sources, here, strict=True)
        }
        at += len(sources)
    return out


def pack_destinations(maps: Sequence[Mapping[int, int]]) -> bytes:
    """The `payload2` of a MERGE: per row where each source went."""
    steps = (target - source for row in maps for source, target in sorted(row.items()))
    return sets.varints(2 * step if step >= 0 else -2 * step - 1 for step in steps)
