"""The room of a spool: one bound for all the processes that write into it.

Whoever makes a file looks how much lies there and makes it in one turn, under a lock on the folder itself, so that two
that look at the same room do not both take it. A turn is as short as one file takes to be made. Nobody waits for it
longer than he says: then he goes by his own look, and the bound may be exceeded by that one file. So it is on a file
system without locks.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from weighbridge.capture.journal import JournalUnavailableError
from weighbridge.schemas.enumerations import GapReason

_AGAIN_S: Final = 0.0005
_BLOCK: Final = 512  # what the operating system counts blocks in


class Quota:
    """The bound of one spool, as one process sees it."""

    def __init__(self, folder: Path, most: int) -> None:
        self._folder = folder
        self._most = most
        self._sizes: dict[str, int] = {}  # as last looked at; replaced as a whole, as threads may read it in no turn
        self._turn = threading.Lock()
        self._whose = 0
        self._handle = -1

    @contextlib.contextmanager
    def room(self, size: int, wait_s: float) -> Iterator[None]:
        """A turn in which `size` bytes more may be written.

        Raises:
            JournalUnavailableError: there is no room for them.
        """
        ours = self._take_turn(wait_s)
        try:
            found = self._sizes = sizes(self._folder, self._sizes)
            if sum(found.values()) + size > self._most:
                raise JournalUnavailableError(GapReason.QUOTA)
            yield
        finally:
            if ours:
                self._end_turn()

    def _take_turn(self, wait_s: float) -> bool:
        until = time.monotonic() + wait_s
        while self._whose != threading.get_ident():  # else a signal handler, in the middle of our own turn
            if self._turn.acquire(blocking=False):
                if self._lock_folder():
                    self._whose = threading.get_ident()
                    return True
                self._turn.release()
            if time.monotonic() >= until:
                break
            time.sleep(_AGAIN_S)
        return False

    def _lock_folder(self) -> bool:
        """Whether nobody else has the turn."""
        try:
            self._handle = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._close()
            return False
        except OSError:
            self._close()  # no folder, or a file system without locks
        return True

    def _end_turn(self) -> None:
        self._whose = 0
        if self._handle >= 0:
            with contextlib.suppress(OSError):  # said aloud: a child forked meanwhile holds the same lock
                fcntl.flock(self._handle, fcntl.LOCK_UN)
            self._close()
        self._turn.release()

    def _close(self) -> None:
        handle, self._handle = self._handle, -1
        if handle >= 0:
            os.close(handle)

    def forget(self) -> None:
        """In a forked child: the turn of the parent is not ours."""
        self._close()


def sizes(folder: Path, known: Mapping[str, int] | None = None) -> dict[str, int]:
    """Bytes on disk of everything in a folder, by name.

    Args:
        known: sizes of before; those of segments, which never change once they have their name, are taken from it.
    """
    out: dict[str, int] = {}
    known = {} if known is None else known
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            sealed = entry.name in known and not entry.name.startswith(".") and entry.is_dir()
            out[entry.name] = known[entry.name] if sealed else _bytes(entry.path)
    return out


def _bytes(path: str) -> int:
    """Bytes on disk of a file, or of all files below a folder; what vanishes meanwhile counts nothing."""
    total = 0
    try:
        if not os.path.isdir(path):  # noqa: PTH112 - no Path per file
            return os.stat(path).st_blocks * _BLOCK  # noqa: PTH116 - as above
        for parent, _, names in os.walk(path):
            for name in names:
                with contextlib.suppress(OSError):
                    total += os.stat(os.path.join(parent, name)).st_blocks * _BLOCK  # noqa: PTH116, PTH118 - as above
    except OSError:
        pass
    return total


def spool_bytes(folder: Path) -> int:
    """Bytes of all files in the spool, sealed segments included."""
    return sum(sizes(folder).values())
