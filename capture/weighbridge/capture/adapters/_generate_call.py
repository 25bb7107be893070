"""A call of `generate()` or `generate_batch()` under way, and the keys its attempts are given."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from weighbridge.capture.adapters._speculation import Drafts
from weighbridge.capture.binding import Attempt, Binding
from weighbridge.capture.wire.carried import answering
from weighbridge.capture.wire.once import Once
from weighbridge.schemas.identity import AttemptKey
from weighbridge.schemas.strategy import Strategy
from weighbridge.schemas.trace import Trace


class Told(Protocol):
    """What a strategy did to the tokens of a call: read once it is over."""

    @property
    def strategy(self) -> Strategy | None:
        """What it was."""
        ...

    @property
    def held_bytes(self) -> int:
        """What it keeps in memory until its events are made."""
        ...

    def counts(self, row: int = 0, /) -> dict[str, int]:
        """The counts of level 1 for one row of the batch."""
        ...

    def add_to(self, trace: Trace, row: int = 0, /) -> None:
        """Add the state events of one row of the batch."""
        ...


@dataclass(slots=True)
class Call:
    """A call of `generate()` under way.

    Attributes:
        attempt: that of its first prompt.
        keys: what the attempts of its prompts are known by already, None where they get a key of their own.
        fresh: it starts without keys and values of earlier calls.
        config, start: the generation configuration as it was prepared, and the columns that were there before the
            first token; None where the framework was not seen preparing them.
        prepared: how often they were prepared; a model that generates in several passes does it for each.
        first_ns: when the first token could be read, 0 where that was not seen.
        ignored: it runs inside another call, as that of an assistant does.
        told: what was done to its tokens, by each that watched.
        batched: it became a call of `generate_batch()`, whose attempts are its own.
    """

    attempt: Attempt
    began_ns: int
    drafts: Drafts
    fresh: bool
    keys: Sequence[AttemptKey | None] = ()
    config: Any = None
    start: int | None = None
    prepared: int = 0
    first_ns: int = 0
    ignored: bool = False
    batched: bool = False
    told: list[Told] = field(default_factory=list)


current: ContextVar[Call | None] = ContextVar("weighbridge_generate", default=None)
beforehand: ContextVar[tuple[Told, ...]] = ContextVar("weighbridge_beforehand", default=())
# Exceptions by which a server ends a call whose client has gone, and what then tells how many tokens were computed: by
# the call's streamer, None where it cannot know. Put here by the server's adapter, and taken away with it.
leaving: Final[dict[type[BaseException], Callable[[Any], int | None]]] = {}
_keys: ContextVar[Sequence[AttemptKey]] = ContextVar("weighbridge_generate_keys", default=())


@contextmanager
def attempt_keys(*keys: AttemptKey) -> Iterator[None]:
    """Give the next call's attempts these keys, in the order of its prompts: those a caller already knows them by."""
    token = _keys.set(keys)
    try:
        yield
    finally:
        _keys.reset(token)


class Keys:
    """The keys that were given to attempts of one model. Each is used once: a second call for the same answer is an
    attempt of its own, not a revision of the first."""

    def __init__(self) -> None:
        self._once = Once()

    def take(self, prompts: int) -> list[AttemptKey | None]:
        """The keys the caller named, else, for a single prompt, that of the answer a server's middleware watches."""
        given = _keys.get()
        if not given and prompts == 1 and (around := answering.get()) is not None:
            given = (around.key,)
        return [self._once.take(key) for key in given[:prompts]]


def attempts(binding: Binding, call: Call, count: int) -> list[Attempt]:
    """One attempt per prompt; all arrived when the call began."""
    out = [call.attempt]
    for index in range(1, count):
        attempt = binding.begin(key=call.keys[index] if index < len(call.keys) else None)
        attempt.arrived_us = call.attempt.arrived_us
        out.append(attempt)
    return out
