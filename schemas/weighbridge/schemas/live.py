"""What is live: the KV entries that exist after a series of state events, per (layer, head).

Only the axis `store` counts. An event without heads covers every head of its layer that is known; the heads of a layer
are named together when they first are. A standing rule holds again after each APPEND.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from weighbridge.schemas.enumerations import Axis, Encoding, Operation
from weighbridge.schemas.position_sets import Rule, positions_of, row_of, rule_of
from weighbridge.schemas.state_event import Key, StateEvent, merges, rows

_GAINS: Final = (Operation.APPEND, Operation.RESTORE, Operation.REUSE)
_LOSSES: Final = (Operation.EVICT, Operation.MERGE)
COMPRESSIONS: Final = (Operation.KEEP_ONLY, *_LOSSES)


@dataclass(slots=True)
class Live:
    """The live KV entries, event by event.

    Attributes:
        sets: per (layer, head) the live positions; bit p is position p.
        merged: per (layer, head) the positions something was merged into. They have no token id.
        unknown: what an event touched that kept a count alone; it is in `sets` no more.
        contradictions: entries that went without being there, or came though they were.
    """

    sets: dict[Key, int] = field(default_factory=dict)
    merged: dict[Key, int] = field(default_factory=dict)
    unknown: set[Key] = field(default_factory=set)
    contradictions: int = 0
    _seen: dict[int, StateEvent] = field(default_factory=dict)
    _rules: dict[Key, Rule] = field(default_factory=dict)

    @property
    def entries(self) -> int:
        """How many KV entries are live."""
        return sum(row.bit_count() for row in self.sets.values())

    def apply(self, event: StateEvent) -> None:
        """Take the next event.

        Raises:
            ContractError: its payload or its base cannot be read.
        """
        self._seen[event.seq] = event
        if event.axis is not Axis.STORE or event.op is Operation.DEMOTE:
            return
        found = rows(event, self._seen)
        targets = merges(event, self._seen) if event.op is Operation.MERGE else None
        for key in event.keys:
            for each in self.covered(key):
                if found is None:
                    self.sets.pop(each, None)
                    self.unknown.add(each)
                elif each not in self.unknown or event.op is Operation.KEEP_ONLY:
                    self._change(event, each, found[key])
                    if targets is not None:
                        self._merge(each, targets[key].values())
        for layer in {layer for layer, head in event.keys if head >= 0}:
            self.sets.pop((layer, -1), None)

    def covered(self, key: Key) -> list[Key]:
        """The keys of the state that a row of an event is about."""
        layer, head = key
        if head < 0:
            known = [each for each in (*self.sets, *self.unknown) if each[0] == layer and each[1] >= 0]
            return known or [key]
        if key not in self.sets and (layer, -1) in self.sets:
            self.sets[key] = self.sets[layer, -1]
            if (layer, -1) in self._rules:
                self._rules[key] = self._rules[layer, -1]
        return [key]

    def _change(self, event: StateEvent, key: Key, members: int) -> None:
        live = self.sets.get(key, 0)
        if event.op in _GAINS:
            self.contradictions += (live & members).bit_count()
            live |= members
            if key in self._rules:
                live &= self._rules[key].row(event.width)
        elif event.op in _LOSSES:
            self.contradictions += (members & ~live).bit_count()
            live &= ~members
        elif event.op is Operation.KEEP_ONLY:
            if key in self.sets:
                self.contradictions += (members & ~live).bit_count()
            # What lies beyond the universe of the event was not looked at.
            live = members | (live >> event.width << event.width)
            self.unknown.discard(key)
            self._rules.pop(key, None)
            rule = rule_of(event.payload) if event.enc is Encoding.RULE else None
            if rule is not None and rule.standing:
                self._rules[key] = rule
        self.sets[key] = live

    def _merge(self, key: Key, targets: Iterable[int]) -> None:
        into = row_of(targets)
        # One that was not there is synthetic: the merge makes it.
        self.sets[key] |= into
        self.merged[key] = self.merged.get(key, 0) | into


def replay(events: Iterable[StateEvent]) -> Live:
    """The state after all events, in the order of `seq`.

    Raises:
        ContractError: a payload or a base cannot be read.
    """
    live = Live()
    for event in sorted(events, key=lambda event: event.seq):
        live.apply(event)
    return live


def fold(events: Iterable[StateEvent]) -> dict[Key, tuple[int, ...]]:
    """The live positions per (layer, head), ascending; keys of which only a count is kept are left out.

    Raises:
        ContractError: a payload or a base cannot be read.
    """
    return {key: positions_of(row) for key, row in sorted(replay(events).sets.items())}


def over_budget(events: Iterable[StateEvent], budget: int) -> list[int]:
    """The `seq` of each compression right after which a row it covers has more than `budget` live entries.

    Between compressions entries are appended, so a budget says nothing about any other moment.

    Raises:
        ContractError: a payload or a base cannot be read.
    """
    live, out = Live(), []
    for event in sorted(events, key=lambda event: event.seq):
        live.apply(event)
        if event.axis is Axis.STORE and event.op in COMPRESSIONS:
            about = {each for key in event.keys for each in live.covered(key)}
            if any(live.sets.get(key, 0).bit_count() > budget for key in about):
                out.append(event.seq)
    return out
