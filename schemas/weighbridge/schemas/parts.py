"""The place of a process in a model that runs in several, and traces of such processes put together to one.

    tensor, expert   every rank does the same steps on heads or experts of its own: its counts are those of rank 0
    pipeline         every stage does the same steps on layers of its own: likewise
    data             every replica answers calls of its own

What all ranks count alike is told by the first of them. What each does to its own heads or layers is told by each,
under the numbers that heads and layers have in the whole model; what they all do is told by all, and read once. A
source is then the installation's name, and for each further rank that name with the rank behind it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from itertools import accumulate
from operator import attrgetter
from typing import Final

from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.identity import NAME, AttemptKey, keyed_key
from weighbridge.schemas.state_event import StateEvent

_MOST: Final = 1 << 20
_content: Final = attrgetter(*(each.name for each in fields(StateEvent) if each.name not in ("seq", "base_seq")))
Events = Sequence[StateEvent] | Callable[[], Sequence[StateEvent]]


class Parallel(StrEnum):
    """What the processes of a model have in common."""

    TENSOR = "tensor"
    PIPELINE = "pipeline"
    DATA = "data"
    EXPERT = "expert"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One process of a model that runs in several.

    Attributes:
        kind: how they share the work; of several ways that are combined, the one between the ranks numbered here.
        rank, world: which of how many, from 0. Rank 0 tells what all of them count alike.
        group: a name all processes of one start of the model have, and no others: calls that are made by all of them in
            the same order get the same attempt id from it.
        first_layer, first_head: the number that this process's first layer and first KV head have in the whole model.

    Raises:
        ConfigError: a rank that is not of its world, or a name that is not allowed.
    """

    kind: Parallel
    rank: int
    world: int
    group: str
    first_layer: int = 0
    first_head: int = 0

    def __post_init__(self) -> None:
        """See that there is such a process."""
        if not 0 <= self.rank < self.world <= _MOST:
            raise ConfigError(f"rank {self.rank} of {self.world}; ranks are numbered from 0 to world - 1")
        if not NAME.fullmatch(self.group):
            raise ConfigError(f"group must match {NAME.pattern}; take a name all processes of this start have")
        if min(self.first_layer, self.first_head) < 0:
            raise ConfigError("first_layer and first_head are numbers in the whole model, from 0")

    @property
    def counts(self) -> bool:
        """Whether this process tells the counts: each replica its own, of the others only the first."""
        return self.kind is Parallel.DATA or self.rank == 0

    def source(self, installation: str) -> str:
        """The source of its rows."""
        return installation if self.rank == 0 else f"{installation}/{self.kind}_rank:{self.rank}"

    def key(self, secret: bytes, call: int | str) -> AttemptKey:
        """The attempt id of a call that all processes make: of its number, or of the id the engine has for it."""
        own = self.rank if self.kind is Parallel.DATA else 0
        return keyed_key(secret, "part", self.group, own, str(call))

    def placed(self, events: Iterable[StateEvent]) -> list[StateEvent]:
        """Events under the numbers that their layers and heads have in the whole model."""
        return [
            replace(
                event,
                layer_lo=_moved(event.layer_lo, self.first_layer),
                layer_hi=_moved(event.layer_hi, self.first_layer),
                head_lo=_moved(event.head_lo, self.first_head),
                head_hi=_moved(event.head_hi, self.first_head),
            )
            for event in events
        ]


def installation_of(source: str) -> str:
    """The installation a source is a rank of; the source itself where it is none."""
    name, _, last = source.rpartition("/")
    kind, _, rank = last.partition("_rank:")
    return name if name and kind in set(Parallel) and rank.isdecimal() else source


def united(shards: Sequence[Sequence[StateEvent]]) -> list[StateEvent]:
    """The traces of the ranks of one attempt as one, in the order of steps; numbered anew, with what refers to them.

    What ranks do alike is told by each of them and stands there once: drafts, which are of no layer, and where experts
    are spread over ranks, the attention that each of them computes whole. Of an event that a rank tells several times
    there are as many as the rank has that tells the most.

    Args:
        shards: one trace per rank, each in its own order.
    """
    # An event that belongs to an earlier step stays behind those told before it: it may refer to them.
    merged = sorted(
        (step, shard, place)
        for shard, events in enumerate(shards)
        for place, step in enumerate(accumulate((event.step for event in events), max))
    )
    numbers: dict[tuple[int, int], int] = {}
    told: dict[tuple[object, ...], list[int]] = {}
    seen: Counter[tuple[int, tuple[object, ...]]] = Counter()
    out: list[StateEvent] = []
    for _, shard, place in merged:
        event = shards[shard][place]
        base = None if event.base_seq is None else numbers[shard, event.base_seq]
        alike = (base, *_content(event))
        same, nth = told.setdefault(alike, []), seen[shard, alike]
        seen[shard, alike] += 1
        if nth == len(same):
            same.append(len(out))
            out.append(replace(event, seq=len(out), base_seq=base))
        numbers[shard, event.seq] = same[nth]
    return out


def _moved(number: int | None, by: int) -> int | None:
    return None if number is None else number + by
