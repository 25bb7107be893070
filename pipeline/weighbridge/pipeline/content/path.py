"""The path of the tokens of one attempt: what was skipped, evicted, merged, masked, drafted and rejected.

Neighbouring layers to which the same happened are one group. A position that something was merged into has no token id
any more, and none is shown for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from weighbridge.schemas.enumerations import Axis, Encoding, Operation
from weighbridge.schemas.position_sets import runs_of
from weighbridge.schemas.trace import Key, Live, StateEvent, rows, survivals

Ranges = tuple[tuple[int, int], ...]
_GAINS = (Operation.APPEND, Operation.RESTORE, Operation.REUSE)


@dataclass(frozen=True, slots=True)
class Group:
    """Neighbouring layers to which the same happened. Positions are ranges, first and last.

    Attributes:
        first, last: layers; -1 where layers are not told apart.
        heads: how many there are; 1 where they are not told apart.
        written, kept, evicted, merged, masked: KV entries of all its layers.
        skipped: positions its layers did not compute, over all steps; None where nothing is told of it, or only
            how many it was in several layers.
        evicted_everywhere: positions gone in every head.
        evicted_somewhere: positions gone in one head or more.
        masked_somewhere: positions that are stored and no longer read, in one head or more.
        merged_from, merged_into: positions, in one head or more.
        unknown: of its entries only counts are kept.
    """

    first: int
    last: int
    heads: int
    written: int
    kept: int
    evicted: int
    merged: int
    masked: int
    skipped: int | None
    evicted_everywhere: Ranges
    evicted_somewhere: Ranges
    masked_somewhere: Ranges
    merged_from: Ranges
    merged_into: Ranges
    unknown: bool


@dataclass(frozen=True, slots=True)
class Step:
    """One verify step: how many tokens were drafted, accepted, rejected and added by the model itself."""

    step: int
    drafted: int
    accepted: int
    rejected: int
    bonus: int


@dataclass(frozen=True, slots=True)
class Counted:
    """An event of which counts are kept, as level 2 keeps all: members of a universe, over all layers and heads.

    Attributes:
        survivals: per position in how many (layer, head) it is a member, where that is kept.
    """

    op: str
    layers: tuple[int, int] | None
    step: int
    members: int
    universe: int
    survivals: tuple[int, ...] | None


@dataclass(slots=True)
class _Cell:
    """What happened in one (layer, head)."""

    written: int = 0
    live: int = 0
    sources: int = 0
    into: int = 0
    masked: int = 0
    unknown: bool = False

    @property
    def gone(self) -> int:
        """Positions that were evicted; what was merged is apart."""
        return self.written & ~self.live & ~self.sources


@dataclass(slots=True)
class Path:
    """The path of an attempt's tokens.

    Attributes:
        groups: by layers.
        steps: verify steps.
        counted: events of which counts alone are kept.
        dropped: (places, of how many) that were left out before the model, by what a place is.
        contradictions: entries that went without being there, or came though they were.
    """

    groups: list[Group] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    counted: list[Counted] = field(default_factory=list)
    dropped: list[tuple[str, int, int]] = field(default_factory=list)
    contradictions: int = 0


def path_of(events: Sequence[StateEvent]) -> Path:
    """The path that state events tell.

    Raises:
        ContractError: a payload or a base cannot be read.
    """
    known = {event.seq: event for event in events}
    live, cells, skipped = Live(), dict[Key, _Cell](), dict[int, int | None]()
    for event in sorted(events, key=lambda event: event.seq):
        live.apply(event)
        found = rows(event, known)
        for key in event.keys if event.axis in (Axis.STORE, Axis.ATTEND) else ():
            for each in live.covered(key):
                _take(cells.setdefault(each, _Cell()), event, None if found is None else found[key])
        if event.op is Operation.SKIP:
            for layer in sorted({layer for layer, _ in event.keys}):
                before, more = skipped.get(layer, 0), _skipped(event, layer, found)
                skipped[layer] = None if before is None or more is None else before + more
    for key, row in live.sets.items():
        cells.setdefault(key, _Cell()).live = row
    for key, row in live.merged.items():
        cells[key].into = row
    for key in live.unknown:
        cells.setdefault(key, _Cell()).unknown = True
    for layer in skipped:
        if not any(at == layer for at, _ in cells):
            cells[layer, -1] = _Cell()
    return Path(list(_groups(cells, skipped)), _steps(events), _counted(events), _dropped(events), live.contradictions)


def _skipped(event: StateEvent, layer: int, found: dict[Key, int] | None) -> int | None:
    """Positions one layer left out; None where only the sum over several layers is known."""
    if found is not None:
        return sum(row.bit_count() for (at, _), row in found.items() if at == layer)
    several = len({at for at, _ in event.keys}) > 1
    return None if several and event.n_members else event.n_members


def _take(cell: _Cell, event: StateEvent, members: int | None) -> None:
    if members is None:
        return
    if event.op in _GAINS or event.op is Operation.KEEP_ONLY:
        cell.written |= members
    elif event.op is Operation.MERGE:
        cell.sources |= members
    elif event.op is Operation.MASK:
        cell.masked |= members


def _groups(cells: dict[Key, _Cell], skipped: dict[int, int | None]) -> Iterator[Group]:
    layers = sorted({layer for layer, _ in cells})
    of_layer = {layer: [cells[key] for key in sorted(cells) if key[0] == layer] for layer in layers}
    first = 0
    for at, layer in enumerate(layers):
        following = layers[at + 1] if at + 1 < len(layers) else None
        alike = (
            following == layer + 1
            and of_layer[following] == of_layer[layer]
            and skipped.get(following) == skipped.get(layer)
        )
        if not alike:
            yield _group(layers[first], layer, of_layer[layer], skipped.get(layer))
            first = at + 1


def _group(first: int, last: int, heads: list[_Cell], skipped: int | None) -> Group:
    layers = last - first + 1
    everywhere, somewhere = heads[0].gone, 0
    for head in heads:
        everywhere &= head.gone
        somewhere |= head.gone

    def entries(what: str) -> int:
        return layers * sum(int(getattr(head, what)).bit_count() for head in heads)

    return Group(
        first=first,
        last=last,
        heads=len(heads),
        written=entries("written"),
        kept=entries("live"),
        evicted=entries("gone"),
        merged=entries("sources"),
        masked=entries("masked"),
        skipped=skipped,
        evicted_everywhere=_ranges(everywhere),
        evicted_somewhere=_ranges(somewhere),
        masked_somewhere=_ranges(_any(head.masked for head in heads)),
        merged_from=_ranges(_any(head.sources for head in heads)),
        merged_into=_ranges(_any(head.into for head in heads)),
        unknown=any(head.unknown for head in heads),
    )


def _any(sets: Iterator[int]) -> int:
    out = 0
    for each in sets:
        out |= each
    return out


def _ranges(row: int) -> Ranges:
    return tuple(runs_of(row))


def _steps(events: Sequence[StateEvent]) -> list[Step]:
    counts: dict[int, dict[Operation, int]] = {}
    for event in events:
        if event.axis is Axis.EMIT:
            at = counts.setdefault(event.step, {})
            at[event.op] = at.get(event.op, 0) + event.n_members
    ops = (Operation.DRAFT, Operation.ACCEPT, Operation.REJECT, Operation.BONUS)
    return [Step(step, *(at.get(op, 0) for op in ops)) for step, at in sorted(counts.items())]


def _counted(events: Sequence[StateEvent]) -> list[Counted]:
    return [
        Counted(
            str(event.op),
            None if event.layer_lo is None or event.layer_hi is None else (event.layer_lo, event.layer_hi),
            event.step,
            event.n_members,
            event.n_universe,
            survivals(event, {}),
        )
        for event in events
        if event.enc is Encoding.COUNT and event.axis in (Axis.STORE, Axis.ATTEND)
    ]


def _dropped(events: Sequence[StateEvent]) -> list[tuple[str, int, int]]:
    out = []
    for event in events:
        if event.axis is Axis.INPUT:
            gone = event.n_members if event.op is Operation.DROP else event.n_universe - event.n_members
            out.append((str(event.pos_space), gone, event.n_universe))
    return out
