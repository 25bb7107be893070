"""Scopes: a team's own pipeline around the model calls, as one request with stages.

    with recorder_scopes.request(tenant="acme", task="support") as request:
        with request.stage(Stage.RETRIEVAL, "vector_search") as stage:
            ...
            stage.tokens(input_tokens=120, output_tokens=900)

The current scope travels in a `ContextVar`: asyncio tasks and `asyncio.to_thread` inherit it by themselves; a thread or
pool of the team's own gets it by `carry(function)`. Model calls made inside a scope belong to its request.
"""

from __future__ import annotations

import contextvars
import functools
import inspect
import itertools
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

from weighbridge.capture.context import Context
from weighbridge.capture.dictionary import Entry
from weighbridge.capture.guard import Guard
from weighbridge.capture.layout import SLOT, Kind
from weighbridge.schemas.enumerations import AttemptStatus, GapReason, Stage
from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.identity import NAME, AttemptKey, new_attempt_id

if TYPE_CHECKING:
    from weighbridge.capture.recorder import Recorder

P = ParamSpec("P")
R = TypeVar("R")
_STAGES: Final = tuple(Stage)
_STATUSES: Final = tuple(AttemptStatus)

current: ContextVar[Scope | None] = ContextVar("weighbridge_scope", default=None)


class Scope:
    """One stage of one request, or the request itself (number 0)."""

    __slots__ = (
        "__weakref__", "_context", "_left", "_ordinals", "_outer", "_plain", "_recorder", "_started_us",
        "input_tokens", "key", "number", "output_tokens", "parent", "stage",
    )  # fmt: skip

    def __init__(
        self, recorder: Recorder, key: AttemptKey, number: int, parent: int | None, stage: Stage, context: int,
        ordinals: Iterator[int],
    ) -> None:  # fmt: skip
        self._recorder = recorder
        self.key = key
        self.number = number
        self.parent = parent
        self.stage = stage
        self._context = context
        self._plain = context  # without the name of a stage: its children have names of their own, or none
        self._ordinals = ordinals
        self._outer: Scope | None = None
        self._left = False
        self._started_us = time.time_ns() // 1000
        self.input_tokens: int | None = None
        self.output_tokens: int | None = None

    def tokens(self, *, input_tokens: int | None = None, output_tokens: int | None = None) -> None:
        """State what entered and left this stage, where its code knows."""
        self.input_tokens = input_tokens
        self.output_tokens = output_tokens

    @contextmanager
    def inside(self, stage: Stage, name: str | None = None) -> Iterator[Scope]:
        """A stage that runs inside this one. It may run in another task or thread, and beside its siblings."""
        child = self._child(stage, name)
        child.enter()
        status = AttemptStatus.SUCCEEDED
        try:
            yield child
        except BaseException as error:
            status = AttemptStatus.FAILED if isinstance(error, Exception) else AttemptStatus.ABORTED
            raise
        finally:
            child.leave()
            child.write(status)

    def enter(self) -> None:
        """Become the current scope."""
        self._outer = current.get()
        current.set(self)

    def leave(self) -> None:
        """Make the innermost scope that is still open the current one.

        No token is reset: an event loop closes an abandoned generator in a context that never entered its scope, and
        two generators that are read in turns leave in another order than they entered.
        """
        self._left = True
        scope = current.get()
        while scope is not None and scope._left:  # noqa: SLF001 - of its own class
            scope = scope._outer  # noqa: SLF001 - as above
        current.set(scope)

    def _child(self, stage: Stage, name: str | None) -> Scope:
        if name is not None and not NAME.fullmatch(name):
            raise ConfigError(f"a stage name must match {NAME.pattern}; it is written to disk in clear")
        dictionary = self._recorder.dictionary
        with dictionary.lock:
            context = self._plain if name is None else self._recorder.scope_context(self._plain, name)
            child = Scope(self._recorder, self.key, next(self._ordinals), self.number, stage, context, self._ordinals)
            child._plain = self._plain
            dictionary.hold(child)
        return child

    def entries(self) -> Iterable[int]:
        """Dictionary numbers its record and those of its children refer to."""
        return (self._context, self._plain)

    def write(self, status: AttemptStatus) -> None:
        """Write the scope's record; guarded, like everything that runs inside the host."""
        with Guard("scope"):
            if not self._context:
                self._recorder.losses.count(GapReason.BUFFER_FULL, attempts=0)
                return
            slot = bytearray(SLOT)
            words = (
                Kind.SCOPE | self._context << 32,
                self.key.hi,
                self.key.lo,
                self.number,
                -1 if self.parent is None else self.parent,
                self._started_us,
                _STAGES.index(self.stage),
                time.time_ns() // 1000 - self._started_us,
                -1 if self.input_tokens is None else self.input_tokens,
                -1 if self.output_tokens is None else self.output_tokens,
                _STATUSES.index(status),
            )
            for index, word in enumerate(words):
                slot[index * 8 : index * 8 + 8] = int(word).to_bytes(8, "little", signed=True)
            self._recorder.put_slot(bytes(slot))


@contextmanager
def request(recorder: Recorder, context: Context, *, key: AttemptKey | None = None) -> Iterator[Scope]:
    """A request: scope 0, around everything that is done for it."""
    entry = context.entry(recorder.key)
    with recorder.dictionary.lock:
        number = recorder.number(Entry.CONTEXT, entry, 0)
        scope = Scope(recorder, key or new_attempt_id(), 0, None, Stage.REQUEST, number, itertools.count(1))
        recorder.dictionary.hold(scope)
    scope.enter()
    status = AttemptStatus.SUCCEEDED
    try:
        yield scope
    except BaseException as error:
        status = AttemptStatus.FAILED if isinstance(error, Exception) else AttemptStatus.ABORTED
        raise
    finally:
        scope.leave()
        scope.write(status)


@contextmanager
def stage(kind: Stage, name: str | None = None) -> Iterator[Scope | None]:
    """A stage of the current request; outside of any request the body runs unrecorded and gets None."""
    scope = current.get()
    if scope is None:
        yield None
        return
    with scope.inside(kind, name) as child:
        yield child


def staged(kind: Stage, name: str | None = None) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A function, plain or `async`, each call of which is a stage of the current request."""

    def wrap(function: Callable[P, R]) -> Callable[P, R]:
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def awaited(*args: P.args, **kwargs: P.kwargs) -> Any:
                with stage(kind, name):
                    return await function(*args, **kwargs)

            return awaited  # type: ignore[return-value]

        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            with stage(kind, name):
                return function(*args, **kwargs)

        return call

    return wrap


def carry(function: Callable[P, R]) -> Callable[P, R]:
    """`function`, bound to the scope of the caller, for a thread or pool that does not inherit it."""
    context = contextvars.copy_context()

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        return context.copy().run(function, *args, **kwargs)

    return call
