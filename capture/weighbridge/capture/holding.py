"""What lies in a spool, and who holds it: files of living processes, abandoned ones, closed ones.

A process locks each of its files before it writes the first byte, and lets go when it closes the file or dies. So a
file with a header whose lock can be had belongs to nobody any more.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from weighbridge.capture.content import MAGIC as CONTENT_MAGIC
from weighbridge.capture.content import SUFFIX as CONTENT
from weighbridge.capture.content import read_content
from weighbridge.capture.journal import SUFFIX as JOURNAL
from weighbridge.capture.layout import MAGIC
from weighbridge.capture.reader import read_journal
from weighbridge.schemas.enumerations import Ended
from weighbridge.schemas.segment import SUFFIX as SEGMENT

ACK: Final = ".ack"
# A file without a header for so long was left behind by a process that died while making it.
_MAKING_S: Final = 60.0


class Holder(StrEnum):
    """Whose a file is."""

    OPEN = "open"
    ABANDONED = "abandoned"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class Sums:
    """What a journal or content file holds: rows (slots, or blocks), and what of it is damaged."""

    process: str
    rows: int
    damaged: int
    end: Ended


def journals(spool: Path) -> list[Path]:
    """The journals, in order of names."""
    return sorted(spool.glob(f"*{JOURNAL}"))


def contents(spool: Path) -> list[Path]:
    """The content files, in order of names."""
    return sorted(spool.glob(f"*{CONTENT}"))


def segments(spool: Path) -> list[Path]:
    """The sealed segments, in order of names."""
    return sorted(path for path in spool.glob(f"*{SEGMENT}") if not path.name.startswith("."))


def acks(spool: Path) -> list[Path]:
    """The acknowledgements."""
    return sorted(spool.glob(f"*{ACK}"))


@contextlib.contextmanager
def taken(path: Path) -> Iterator[bool]:
    """Hold a file that no process holds while the block runs; False where one does, or where it is gone."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        yield False
        return
    try:
        yield _free(handle, path)
    finally:
        os.close(handle)


def _free(handle: int, path: Path) -> bool:
    """Whether nobody holds the file; where so, its lock is ours until the handle is closed."""
    about = os.fstat(handle)
    if os.pread(handle, 1, 0) in (b"", b"\0") and time.time() - about.st_mtime < _MAKING_S:
        return False  # between making and locking it: a lock of ours now would leave its owner without one
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return not _lives(path)  # a file system without locks: the process id in the name has to do
    return os.fstat(handle).st_nlink > 0


def _lives(path: Path) -> bool:
    """Whether there is a process with the id in the name of the file."""
    try:
        os.kill(int(path.stem.rsplit("-", 3)[1]), 0)
    except PermissionError:
        return True
    except (ProcessLookupError, ValueError, IndexError, OverflowError):
        return False
    return True


def sums(path: Path) -> Sums:
    """Read a journal or content file through.

    Raises:
        ContractError: its header is damaged.
        OSError: it cannot be read.
    """
    if path.suffix == CONTENT:
        content = read_content(path)
        end = Ended.COMPLETE if content.complete else Ended.UNKNOWN
        return Sums(str(content.header.get("process", "")), len(content.blocks), content.damaged, end)
    journal = read_journal(path)
    return Sums(str(journal.header.get("process", "")), journal.taken, journal.damaged, journal.end)


def unwritten(path: Path) -> bool:
    """Whether the process died before it wrote the header: there is nothing in the file."""
    with path.open("rb") as file:
        head = file.read(max(len(MAGIC), len(CONTENT_MAGIC)))
    return not head.strip(b"\0")
