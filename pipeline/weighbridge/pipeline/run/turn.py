"""One run at a time: whoever works through an installation holds its turn, and others wait or are told who has it.

The lake's own lock keeps two writers apart for one commit; the turn keeps two nights apart, so that no report is made
from half of another run's work. It is a lock of the system on a file, so it falls with its process, however that ends.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from weighbridge.pipeline.run.home import Home
from weighbridge.pipeline.run.leftovers import sweep
from weighbridge.schemas.errors import LakeBusyError

T = TypeVar("T")
FILE = "turn.lock"
_POLL_S = 0.2


@contextmanager
def turn(home: Home, *, wait_s: float = 0) -> Iterator[None]:
    """Hold the turn while the block runs; first, what a killed run left half-written is deleted.

    Args:
        home: the installation.
        wait_s: how long to wait for a run that is at work, seconds.

    Raises:
        LakeBusyError: another run is still at work after that time; nothing was done.
    """
    home.state.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(home.state / FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        patiently(lambda: _taken(home, handle), wait_s)
        os.ftruncate(handle, 0)
        os.pwrite(handle, str(os.getpid()).encode(), 0)
        sweep(home)
        yield
    finally:
        os.close(handle)


def patiently(work: Callable[[], T], wait_s: float) -> T:
    """`work()`, tried again for `wait_s` seconds while something else is writing.

    Raises:
        LakeBusyError: that was still so at the end.
    """
    until = time.monotonic() + wait_s
    while True:
        try:
            return work()
        except LakeBusyError:
            if time.monotonic() >= until:
                raise
            time.sleep(_POLL_S)


def _taken(home: Home, handle: int) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.pread(handle, 20, 0).decode(errors="replace").strip() or "unknown"
        raise LakeBusyError(
            f"{home.root} is being worked on by another run, process {holder}; nothing was done. Wait until it has "
            "ended, or give this run a time to wait with --wait."
        ) from None
