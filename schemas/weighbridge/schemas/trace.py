"""Level 3: state events, how they are made, read and folded, and the strategies they belong to.

trace = Trace(strategy.strategy_id)
trace.add(Axis.STORE, Operation.KEEP_ONLY, kept, width=256, layers=(0, 3), heads=(0, 1), head_kind=HeadKind.KEY_VALUE)
fold(trace.events)          # live positions per (layer, head)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from weighbridge.schemas import position_sets as sets
from weighbridge.schemas.enumerations import Axis, Encoding, Fidelity, HeadKind, Operation, Phase, PositionSpace
from weighbridge.schemas.errors import ContractError
from weighbridge.schemas.live import COMPRESSIONS, Live, fold, over_budget, replay
from weighbridge.schemas.position_sets import Rule, positions_of, row_of
from weighbridge.schemas.state_event import Key, StateEvent, merges, pack_destinations, positions, rows, survivals
from weighbridge.schemas.strategy import Strategy

__all__ = [
    "COMPRESSIONS",
    "Key",
    "Live",
    "Rule",
    "StateEvent",
    "Strategy",
    "Trace",
    "fold",
    "merges",
    "over_budget",
    "pack_positions",
    "positions",
    "positions_of",
    "replay",
    "row_of",
    "rows",
    "survivals",
]

Range = tuple[int, int] | None
# A payload no larger than this is written again rather than referred to.
_SMALL: Final = 16
# Differences are taken against differences up to this depth, so that reading one event reads few.
_DEPTH: Final = 32


def pack_positions(positions: Sequence[int], universe: int) -> tuple[Encoding, bytes | None]:
    """Store one set of positions in the fewest bytes: ALL, RANGES or BITMAP_Z.

    Raises:
        ContractError: a position is below 0, or not below `universe`.
    """
    return sets.pack_rows((row_of(positions),), universe)


class _Last(NamedTuple):
    """The latest set of one kind and scope.

    Attributes:
        seq: of its event.
        whole: bytes of the latest set of the kind that was packed whole.
        depth: of its differences.
    """

    seq: int
    rows: sets.Rows
    width: int
    whole: int
    depth: int


class Trace:
    """The state events of one attempt, in the order they are added.

    Equal sets are stored once: a later event refers to the first. Where few positions changed since the last event of
    the same kind and scope, the difference is stored.

    Attributes:
        events: what was added.
        strategy_id: given to every event.
    """

    def __init__(self, strategy_id: str | None = None) -> None:
        self.events: list[StateEvent] = []
        self.strategy_id = strategy_id
        self._same: dict[tuple[sets.Rows, int], int] = {}
        self._last: dict[tuple[Any, ...], _Last] = {}

    def add(
        self,
        axis: Axis,
        op: Operation,
        members: Sequence[int] | Rule,
        *,
        width: int,
        step: int = 0,
        phase: Phase = Phase.PREFILL,
        layers: Range = None,
        heads: Range = None,
        head_kind: HeadKind = HeadKind.NONE,
        pos_space: PositionSpace = PositionSpace.SEQUENCE,
        destinations: Sequence[Mapping[int, int]] | None = None,
        fidelity: Fidelity | None = None,
        sample_p: float | None = None,
    ) -> StateEvent:
        """Add an event whose positions are known.

        Args:
            members: per (layer, head), layers outermost, a set as `row_of` makes it; one set alone is that of all. Or
                a rule.
            width: the positions of one row.
            layers, heads: first and last.
            destinations: of a MERGE: per row where each source went.
            fidelity: EXACT (or RULE) if not given.

        Raises:
            ContractError: see `StateEvent`; or there are not as many sets as rows.
        """
        count = _length(layers) * _length(heads)
        base: int | None = None
        payload: bytes | None
        if isinstance(members, Rule):
            per_row = (members.row(width),) * count
            encoding, payload = Encoding.RULE, members.packed()
        else:
            per_row = tuple(members) * (count if len(members) == 1 else 1)
            if len(per_row) != count:
                raise ContractError(f"{len(members)} sets for {count} rows; give one per (layer, head), or one for all")
            scope = (axis, op, layers, heads, head_kind, pos_space)
            encoding, payload, base = self._stored(scope, per_row, width)
        event = StateEvent(
            len(self.events), step, phase, axis, op, *_ends(layers), *_ends(heads), head_kind, pos_space,
            width * count, sum(row.bit_count() for row in per_row), encoding, payload,
            None if destinations is None else pack_destinations(destinations),
            base,
            fidelity or (Fidelity.RULE if isinstance(members, Rule) else Fidelity.EXACT),
            sample_p,
            self.strategy_id,
        )  # fmt: skip
        self.events.append(event)
        return event

    def _stored(self, scope: tuple[Any, ...], rows: sets.Rows, width: int) -> tuple[Encoding, bytes | None, int | None]:
        """The encoding, payload and base of a set. Where a difference will do, the whole is not packed."""
        seq = len(self.events)
        same = self._same.get((rows, width))
        if same is not None:
            return Encoding.DELTA, None, same
        before = self._last.get(scope)
        difference = None if before is None else _difference(before, rows, width)
        if before is not None and difference is not None:
            self._same[rows, width] = seq
            self._last[scope] = _Last(seq, rows, width, before.whole, before.depth + 1)
            return Encoding.DELTA, difference, before.seq
        encoding, payload = sets.pack_rows(rows, width)
        whole = len(payload or b"")
        if whole > _SMALL:
            self._same[rows, width] = seq
        self._last[scope] = _Last(seq, rows, width, whole, 0)
        return encoding, payload, None

    def count(
        self,
        axis: Axis,
        op: Operation,
        members: int,
        universe: int,
        *,
        survivals: Sequence[int] | None = None,
        step: int = 0,
        phase: Phase = Phase.PREFILL,
        layers: Range = None,
        heads: Range = None,
        head_kind: HeadKind = HeadKind.NONE,
        pos_space: PositionSpace = PositionSpace.SEQUENCE,
        sample_p: float | None = None,
    ) -> StateEvent:
        """Add an event of which counts are kept: how many members, and in how many rows each position is one.

        Args:
            members, universe: summed over the rows.
            survivals: per position in how many rows it is a member (level 2), or nothing.

        Raises:
            ContractError: see `StateEvent`.
        """
        payload = None if survivals is None else sets.pack_counts(survivals)
        event = StateEvent(
            len(self.events), step, phase, axis, op, *_ends(layers), *_ends(heads), head_kind, pos_space,
            universe, members, Encoding.COUNT, payload, None, None, Fidelity.COUNTS, sample_p, self.strategy_id,
        )  # fmt: skip
        self.events.append(event)
        return event


def survival_events(events: Sequence[StateEvent]) -> list[StateEvent]:
    """What level 2 keeps of a trace: counts, and per position in how many (layer, head) it is a member."""
    known = {event.seq: event for event in events}
    trace = Trace()
    for event in events:
        trace.strategy_id = event.strategy_id
        kept = survivals(event, known) if event.axis is Axis.STORE else None
        trace.count(
            event.axis, event.op, event.n_members, event.n_universe, survivals=kept, step=event.step,
            phase=event.phase, layers=_both(event.layer_lo, event.layer_hi), heads=_both(event.head_lo, event.head_hi),
            head_kind=event.head_kind, pos_space=event.pos_space, sample_p=event.sample_p,
        )  # fmt: skip
    return trace.events


def _difference(before: _Last, rows: sets.Rows, width: int) -> bytes | None:
    """The payload of a DELTA, None where it is not less than half of what the whole set is expected to take."""
    if before.width > width or before.depth >= _DEPTH or before.whole <= _SMALL:
        return None
    # A difference of more positions than the set has bytes is not half as large, and is not written out.
    if sum((row ^ old).bit_count() for row, old in zip(rows, before.rows, strict=True)) > before.whole:
        return None
    # Of few runs the whole set takes less than the earlier one did; a run is 2 bytes or more.
    most = min(before.whole, 4 * sum((row & ~(row << 1)).bit_count() for row in set(rows)))
    difference = sets.pack_difference(rows, before.rows, width)
    return difference if difference is not None and 2 * len(difference) < most else None


def _both(low: int | None, high: int | None) -> Range:
    return None if low is None or high is None else (low, high)


def _ends(span: Range) -> tuple[int | None, int | None]:
    return span if span is not None else (None, None)


def _length(span: Range) -> int:
    return 1 if span is None else span[1] - span[0] + 1
