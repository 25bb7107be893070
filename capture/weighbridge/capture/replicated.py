"""Attempts of a process whose counts another process tells: they write traces, and nothing else.

A rank of a tensor-parallel model does every step its first rank does. If each wrote its attempts, every token would be
counted as often as there are ranks. A host's code and an adapter need not know of it: they begin and finish attempts
as anywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from weighbridge.capture.binding import Attempt, Binding
from weighbridge.schemas.identity import AttemptKey
from weighbridge.schemas.parts import Events, Part
from weighbridge.schemas.state_event import StateEvent

if TYPE_CHECKING:
    import itertools


class PartBinding(Binding):
    """A binding of a process that is part of a model: all parts give a call one key, by its number."""

    __slots__ = ("_numbers", "_part")

    def of(self, part: Part, numbers: itertools.count[int]) -> None:
        """Say which part it is; `numbers` are shared by all bindings of its recorder."""
        self._part = part
        self._numbers = numbers

    def begin(
        self,
        key: AttemptKey | None = None,
        request: AttemptKey | None = None,
        scope: int = 0,
        number: int = 1,
        level: int | None = None,
    ) -> Attempt:
        """As `Binding.begin`; without a `key` that of this call, which the other parts make too."""
        part = self._part
        attempt = super().begin(key or part.key(self.recorder.key, next(self._numbers)), request, scope, number, level)
        if not part.counts:
            attempt.__class__ = Replicated
        return attempt


class Replicated(Attempt):
    """An attempt that another process counts."""

    __slots__ = ()

    def offer(self, prompt: Any, output: Any) -> int:  # noqa: ARG002 - the signature it replaces
        """Ids are handed over there."""
        return -1

    def finish(self, outcome: int, counts: Sequence[int] = (), usage: object = None, ids_expected: int = -1) -> bool:  # noqa: ARG002 - as above
        """Nothing is written here; the other process's record is the record."""
        self.done = True
        return True


def facts_of(part: Part | None) -> dict[str, str | int | None]:
    """What a journal's header says about a part."""
    if part is None:
        return {}
    return {
        "role": str(part.kind),
        "rank": part.rank,
        "world": part.world,
        "group": part.group,
        "first_layer": part.first_layer,
        "first_head": part.first_head,
    }


def placed(part: Part, events: Events) -> Sequence[StateEvent]:
    """Events, or what a call makes of them, under the numbers of the whole model."""
    return part.placed(events() if callable(events) else events)
