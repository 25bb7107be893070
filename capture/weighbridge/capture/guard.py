"""The guard around the host: nothing that goes wrong in capture reaches the serving process.

What the guard swallows is counted by reason and said once per minute and place on the `weighbridge.capture` logger,
by exception type and place only: the text of an exception may hold text of a prompt. Under test
(`WEIGHBRIDGE_CAPTURE_RAISE=1`) it raises again, so that it never hides an error of our own.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import threading
import time
from collections import Counter
from collections.abc import Callable
from types import TracebackType
from typing import Final, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

RAISE_VARIABLE: Final = "WEIGHBRIDGE_CAPTURE_RAISE"
_LOG = logging.getLogger("weighbridge.capture")
_SAY_AGAIN_S = 60.0

swallowed: Counter[str] = Counter()
_said: dict[str, float] = {}
_lock = threading.RLock()


def raises() -> bool:
    """Whether guarded errors are raised again (tests only)."""
    return os.environ.get(RAISE_VARIABLE) == "1"


def report(error: BaseException, place: str) -> None:
    """Count an error that was swallowed at `place`, and say so, once a minute per place."""
    name = f"{place}:{type(error).__name__}"
    with _lock:
        swallowed[name] += 1
        now = time.monotonic()
        if now - _said.get(name, -_SAY_AGAIN_S) < _SAY_AGAIN_S:
            return
        _said[name] = now
        count = swallowed[name]
    with contextlib.suppress(Exception):  # a log handler of the host may raise, and this is its request
        _LOG.warning("capture went on without a record: %s at %s (%d so far)", type(error).__name__, place, count)


def after_fork() -> None:
    """In a forked child: the lock may be held by a thread that does not exist there."""
    global _lock  # noqa: PLW0603 - the one module-level lock
    _lock = threading.RLock()


class Guard:
    """`with Guard("place"):` swallows every `Exception` of its body. KeyboardInterrupt and the like pass."""

    __slots__ = ("place",)

    def __init__(self, place: str) -> None:
        self.place = place

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if error is None or not isinstance(error, Exception):
            return False
        report(error, self.place)
        return not raises()


def guarded(default: R) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A function that answers `default` where it would have raised."""

    def wrap(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                return function(*args, **kwargs)
            except Exception as error:
                report(error, function.__qualname__)
                if raises():
                    raise
                return default

        return call

    return wrap
