"""What a press did to the cache during one generation, and the state events and counts that come to.

Per layer one map of positions (batch x heads x rows, integers) is kept, and gathered each time rows are: positions of
later compressions are thereby those of the sequence, though the press sees the rows that are left. The maps are turned
into events off the request path.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypedDict, TypeVar

from weighbridge.capture.adapters._counts import UNKNOWN
from weighbridge.capture.adapters._press_merges import Merge
from weighbridge.schemas.enumerations import Axis, HeadKind, Operation, Phase
from weighbridge.schemas.position_sets import full
from weighbridge.schemas.strategy import Strategy
from weighbridge.schemas.trace import Rule, Trace, row_of

Kind = TypeVar("Kind", bound=tuple[Any, ...])


@dataclass(slots=True)
class Compression:
    """One time a layer lost rows.

    Attributes:
        step: forward passes before it.
        seen: positions that had been written.
        before, after: rows of each head.
        positions: of the rows that stayed (batch x heads x rows), or None where they are not known.
    """

    step: int
    seen: int
    before: int
    after: int
    positions: Any


@dataclass(slots=True)
class Layer:
    """One layer.

    Attributes:
        seen: positions written.
        rows: rows in the cache.
        steps: forward passes.
        prompt: positions of the first pass.
        read: keys read, over all passes, by one head.
        heads, batch: of the cache.
        positions: of its rows, None while nothing was taken out, or where nobody knows (`lost_track`).
        compressions: each time rows were lost.
        merges: each time values were folded into those of survivors.
        pending: positions written since `positions` was last gathered.
        masked: (batch, head, position) of what is stored and not read any more, as three tensors.
        under_mask: positions computed since it was masked; each of them leaves out all of it.
        left_out: per row of the batch the keys that masks before this one left out.
    """

    seen: int = 0
    rows: int = 0
    steps: int = 0
    prompt: int = 0
    read: int = 0
    heads: int = 0
    batch: int = 0
    positions: Any = None
    compressions: list[Compression] = field(default_factory=list)
    merges: list[Merge] = field(default_factory=list)
    masked: Any = None
    under_mask: int = 0
    left_out: Any = None
    lost_track: bool = False
    pending: int = 0

    def masked_reads(self, row: int) -> int:
        """Keys that were not read though they are stored: of all heads, by every position computed under a mask."""
        left_out = self._left_out()
        return 0 if left_out is None else int(left_out[row])

    def masks(self, masked: Any) -> None:
        """The press masks this from the next pass on; masking at decoding time makes another mask again and again."""
        if masked is not self.masked:
            self.left_out, self.masked, self.under_mask = self._left_out(), masked, 0

    def _left_out(self) -> Any:
        if self.masked is None:
            return self.left_out
        each = self.masked[0].bincount(minlength=self.batch) * self.under_mask
        return each if self.left_out is None else self.left_out + each

    def went_on(self, width: int) -> None:
        """A pass wrote `width` positions behind what was there."""
        before = self.rows
        self.rows += width
        self.seen += width
        self.pending += width
        self.under_mask += width
        self.steps += 1
        self.read += width * before + width * (width + 1) // 2

    def wrote(self, keys: Any, width: int) -> None:
        """A pass wrote the keys of `width` positions; `keys` is the cache after it, before any compression."""
        self.batch, self.heads = int(keys.shape[0]), int(keys.shape[1])
        before = int(keys.shape[2]) - width
        if before < self.rows:  # the host cut the cache back, to ask something else of the same prompt
            if self.positions is not None:
                self.positions, self.pending = self._whole()[:, :, :before], 0
            elif not self.lost_track:
                self.seen = before
            self.rows = before
        self.prompt = self.prompt or width
        self.went_on(width)

    def _whole(self) -> Any:
        """The map with what was written since it was last gathered."""
        import torch  # noqa: PLC0415 - the host has it loaded

        like = self.positions
        if not self.pending:
            return like
        more = torch.arange(self.seen - self.pending, self.seen, device=like.device, dtype=like.dtype)
        return torch.cat([like, more.expand(self.batch, self.heads, self.pending)], 2)

    def current(self, device: Any) -> Any:
        """The positions of all rows; None where nobody knows."""
        if self.lost_track:
            return None
        if self.positions is not None:
            self.positions, self.pending = self._whole(), 0
            return self.positions
        import torch  # noqa: PLC0415 - the host has it loaded

        every = torch.arange(self.seen, device=device, dtype=torch.int32)
        return every.expand(self.batch, self.heads, self.seen)

    def merged(self, merge: Merge) -> None:
        """The press folded values into those of survivors."""
        merge.step, merge.seen = self.steps - 1, self.seen
        self.merges.append(merge)

    def lost(self, rows: int, positions: Any) -> None:
        """Rows are gone; those that stayed are at `positions`, or nobody knows."""
        self.compressions.append(Compression(self.steps - 1, self.seen, self.rows, rows, positions))
        self.rows, self.positions, self.pending = rows, positions, 0
        self.lost_track = positions is None


@dataclass(slots=True)
class PressTrace:
    """One generation under a press.

    Attributes:
        strategy: the press.
        merges_unknown: it merged values, and which is not known: those are among what was evicted.
        wanted: positions are wanted, not only counts.
        layers: by index.
    """

    strategy: Strategy | None = None
    merges_unknown: bool = False
    wanted: bool = True
    layers: dict[int, Layer] = field(default_factory=dict)

    @property
    def held_bytes(self) -> int:
        """What the maps keep in memory."""
        layers = self.layers.values()
        kept = (each.positions for layer in layers for each in layer.compressions if each.positions is not None)
        return sum(int(each.numel()) * 8 for each in kept) + sum(
            each.held_bytes for layer in layers for each in layer.merges
        )

    def add_to(self, trace: Trace, row: int = 0) -> None:
        """Add the state events of one row of the batch.

        APPEND says what was written, MERGE what went into what, KEEP_ONLY what stayed, MASK what stays stored and is
        not read any more.
        """
        trace.strategy_id = None if self.strategy is None else self.strategy.strategy_id
        written = dict.fromkeys(self.layers, 0)
        steps: dict[int, dict[int, Compression]] = {}
        for index, layer in sorted(self.layers.items()):
            for each in layer.compressions:
                steps.setdefault(each.step, {})[index] = each
        for step, here in sorted(steps.items()):
            _append(
                trace, written, {index: (each.seen, self.layers[index].heads) for index, each in here.items()}, step
            )
            self._merge(trace, row, step)
            kinds = {i: (each.seen, self.layers[i].heads, each.positions is None) for i, each in here.items()}
            for low, high, (seen, heads, unknown) in _runs(kinds):
                scope = _scope(low, high, heads) | {"step": step, "phase": _phase(step)}
                if unknown:
                    stayed = heads * sum(here[index].after for index in range(low, high + 1))
                    trace.count(Axis.STORE, Operation.KEEP_ONLY, stayed, seen * heads * (high - low + 1), **scope)
                    continue
                kept = _sets([here[index].positions[row] for index in range(low, high + 1)], seen)
                trace.add(Axis.STORE, Operation.KEEP_ONLY, _rule(kept, seen) or kept, width=seen, **scope)
        last = max((layer.steps for layer in self.layers.values()), default=1) - 1
        _append(trace, written, {i: (layer.seen, layer.heads) for i, layer in sorted(self.layers.items())}, last)
        self._mask(trace, row)

    def _merge(self, trace: Trace, row: int, step: int) -> None:
        """Positions whose values went into those of others."""
        here = {
            index: [each for each in layer.merges if each.step == step and each.sources is not None]
            for index, layer in self.layers.items()
        }
        for at in range(max(map(len, here.values()), default=0)):
            told = {index: each[at] for index, each in sorted(here.items()) if at < len(each)}
            for low, high, (seen, heads) in _runs({i: (each.seen, self.layers[i].heads) for i, each in told.items()}):
                maps = [each for index in range(low, high + 1) for each in told[index].maps(row)]
                if any(maps):
                    scope = _scope(low, high, heads) | {"step": step, "phase": _phase(step)}
                    sources = list(map(row_of, maps))
                    trace.add(Axis.STORE, Operation.MERGE, sources, width=seen, destinations=maps, **scope)

    def _mask(self, trace: Trace, row: int) -> None:
        """Positions the press has the attention leave out, though they stay in the cache."""
        masked = {i: layer for i, layer in sorted(self.layers.items()) if layer.masked is not None}
        for low, high, (seen, heads) in _runs({i: (layer.seen, layer.heads) for i, layer in masked.items()}):
            out: list[int] = []
            for index in range(low, high + 1):
                batches, of_heads, positions = (part.tolist() for part in masked[index].masked)
                per_head: list[list[int]] = [[] for _ in range(heads)]
                for batch, head, position in zip(batches, of_heads, positions, strict=True):
                    if batch == row:
                        per_head[head].append(position)
                out += map(row_of, per_head)
            trace.add(Axis.ATTEND, Operation.MASK, out, width=seen, **_scope(low, high, heads))

    def counts(self, row: int = 0) -> dict[str, int]:
        """The counts of level 1; keys read are those of one head, the mean over layers and heads, rounded down."""
        layers = list(self.layers.values())
        if not layers:
            return {}
        gone = sum((each.before - each.after) * layer.heads for layer in layers for each in layer.compressions)
        merged = sum(each.count(row) for layer in layers for each in layer.merges)
        read = sum(layer.read * layer.heads - layer.masked_reads(row) for layer in layers)
        return {
            "attended": read // sum(layer.heads for layer in layers),
            "attended_dense": sum(layer.seen * (layer.seen + 1) // 2 for layer in layers) // len(layers),
            "kv_appended": sum(layer.seen * layer.heads for layer in layers),
            "kv_evicted": gone - merged,
            "kv_merged": UNKNOWN if self.merges_unknown else merged,
            "kv_kept": sum(layer.rows * layer.heads for layer in layers),
        }


class _Scope(TypedDict, total=False):
    layers: tuple[int, int]
    heads: tuple[int, int]
    head_kind: HeadKind
    step: int
    phase: Phase


def _scope(low: int, high: int, heads: int) -> _Scope:
    return _Scope(layers=(low, high), heads=(0, heads - 1), head_kind=HeadKind.KEY_VALUE)


def _phase(step: int) -> Phase:
    return Phase.DECODE if step else Phase.PREFILL


def _append(trace: Trace, written: dict[int, int], upto: dict[int, tuple[int, int]], step: int) -> None:
    """Say what was written since the last time, for each layer up to so many positions."""
    new = {i: (written[i], seen, heads) for i, (seen, heads) in upto.items() if seen > written[i]}
    for low, high, (before, seen, heads) in _runs(new):
        scope = _scope(low, high, heads) | {"step": step, "phase": _phase(step)}
        trace.add(Axis.STORE, Operation.APPEND, [full(seen) ^ full(before)], width=seen, **scope)
    written.update({i: seen for i, (seen, _) in upto.items()})


def _runs(kinds: Mapping[int, Kind]) -> Iterator[tuple[int, int, Kind]]:
    """First and last of neighbouring layers of one kind."""
    low = high = -1
    kind: Kind | None = None
    for index, each in sorted(kinds.items()):
        if kind is not None and (index != high + 1 or each != kind):
            yield low, high, kind
            kind = None
        if kind is None:
            low, kind = index, each
        high = index
    if kind is not None:
        yield low, high, kind


def _sets(positions: list[Any], width: int) -> list[int]:
    """The positions of each head of each layer (heads x rows) as sets, layers outermost."""
    import torch  # noqa: PLC0415 - the host has it loaded

    if len({each.shape[1] for each in positions}) > 1:  # layers that keep differently many
        return [found for each in positions for found in _sets([each], width)]
    # All layers at once: one copy to the host, and a few operations.
    places = torch.cat(positions).cpu().long()
    size = (width + 7) // 8
    bits = torch.zeros(places.shape[0], size * 8, dtype=torch.uint8).scatter_(1, places, 1)
    weights = torch.tensor([1, 2, 4, 8, 16, 32, 64, 128], dtype=torch.uint8)
    packed = (bits.view(-1, size, 8) * weights).sum(-1, dtype=torch.uint8).numpy().tobytes()
    return [int.from_bytes(packed[at : at + size], "little") for at in range(0, len(packed), size)]


def _rule(kept: list[int], width: int) -> Rule | None:
    """The rule of the sets, where they are all the same first and last positions."""
    first = kept[0]
    if any(row != first for row in kept) or first == full(width):
        return None
    sinks = (~first & full(width) & -(~first & full(width))).bit_length() - 1
    window = first.bit_count() - sinks
    rule = Rule(sinks, window)
    return rule if rule.row(width) == first else None
