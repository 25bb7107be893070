"""What stops a run: a gate, or a full disk outside the lake, said in words that end in the next step."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from weighbridge.schemas.errors import Terminal, Transient, WeighbridgeError

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class DiskFullError(WeighbridgeError, Transient):
    """The disk of the installation is full. What was committed stays; the same call succeeds once there is room."""


class GateRefusedError(WeighbridgeError, Terminal):
    """A gate refused what a step looked at; what comes after that step was not done, and nothing is lost."""


class LeftBehindError(WeighbridgeError, Terminal):
    """Something that should be gone could not be deleted; the next run tries it again."""


@contextmanager
def spoken(action: str) -> Iterator[None]:
    """Turn a full disk into a `DiskFullError` about `action`; every other error passes."""
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL:
            raise
        raise DiskFullError(
            f"the disk is full while {action}; what was committed is safe. Make room, then run it again: it goes on "
            "where it stopped."
        ) from error
