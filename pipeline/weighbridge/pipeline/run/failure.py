"""What stops a run: a gate, or the machine below it, said in words that end in the next step."""

from __future__ import annotations

import errno
import logging
from collections.abc import Iterator
from contextlib import contextmanager

from weighbridge.schemas.errors import Terminal, Transient, WeighbridgeError

PROGRESS = "weighbridge.progress"  # a log of its own, so that it can be shown without the rest
_progress = logging.getLogger(PROGRESS)
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_OWNER = "check the owner and mode of that path, or run the command as its owner"
_HINTS = {
    errno.ENOSPC: "make room on that disk and run the command again; what was committed is safe",
    errno.EACCES: _OWNER,
    errno.EPERM: _OWNER,
    errno.EROFS: "that file system is read-only; name another place",
    errno.ENOENT: "check the path",
}


class DiskFullError(WeighbridgeError, Transient):
    """The disk of the installation is full. What was committed stays; the same call succeeds once there is room."""


class MachineError(WeighbridgeError, Terminal):
    """The system refused something: a right that is missing, a file system that is read-only, a path that is gone."""


class GateRefusedError(WeighbridgeError, Terminal):
    """A gate refused what a step looked at; what comes after that step was not done, and nothing is lost."""


class LeftBehindError(WeighbridgeError, Terminal):
    """Something that should be gone could not be deleted; the next run tries it again."""


def of_machine(error: OSError) -> str:
    """What the system refused, at which path, and what to do about it."""
    where = f": {error.filename}" if error.filename else ""
    hint = _HINTS.get(error.errno or 0, "check the path and the disk")
    return f"{error.strerror or type(error).__name__}{where}; {hint}"


def refused_by_machine(error: OSError) -> WeighbridgeError:
    """The same as an error of ours: a full disk may be cleared, the rest has to be mended first."""
    return DiskFullError(of_machine(error)) if error.errno in _FULL else MachineError(of_machine(error))


@contextmanager
def spoken(action: str) -> Iterator[None]:
    """Say in the log that `action` begins, and turn a full disk into a `DiskFullError` about it; other errors pass."""
    _progress.info("%s", action)
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL:
            raise
        raise DiskFullError(
            f"the disk is full while {action}; what was committed is safe. Make room, then run it again: it goes on "
            "where it stopped."
        ) from error
