"""The recorders of this process: closed when the interpreter ends, and made anew in a forked child."""

from __future__ import annotations

import atexit
import os
import weakref
from typing import Final, Protocol

from weighbridge.capture import guard
from weighbridge.capture.guard import Guard


class Closing(Protocol):
    """A recorder, as far as its end goes."""

    def close(self) -> None:
        """Write what waits, close the files."""
        ...

    def after_fork(self) -> None:
        """In a forked child: forget the parent's files."""
        ...


living: Final[set[Closing]] = set()
closed: Final[weakref.WeakSet[Closing]] = weakref.WeakSet()


def _close_all() -> None:
    for recorder in list(living):
        with Guard("close"):
            recorder.close()


def _after_fork() -> None:
    guard.after_fork()
    for recorder in {*living, *closed}:
        recorder.after_fork()


atexit.register(_close_all)
os.register_at_fork(after_in_child=_after_fork)
