"""The journal: where records go so that a SIGKILL at any instant loses none that was finished.

What all journal files have in common: their name, their header page, their closing record and their lock. Three kinds
take records: `MappedJournal` (a store into mapped memory), `FileJournal` (the fallback, a writer thread) and, while no
file can be had, `NoJournal`. `GapJournal` takes losses alone. All files have the same bytes (`layout`).
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import itertools
import json
import os
import re
import sys
import time
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from weighbridge.capture import layout
from weighbridge.capture.layout import CLOSE, CLOSING, HEADER, MAGIC, PAGE, SLOT, Kind
from weighbridge.schemas.enumerations import GapReason

SUFFIX: Final = ".journal"
SEGMENT_BYTES: Final = 4 << 20
GRACE_S: Final = 10.0  # for so long a store under way keeps its file open
# Slots are little-endian, a memoryview has the order of the machine; without the GIL two could be given one place.
MAPPABLE: Final = sys.byteorder == "little" and getattr(sys, "_is_gil_enabled", lambda: True)()
NO_WORDS: Final = memoryview(b"").cast("q")
NO_REALS: Final = memoryview(b"").cast("d")
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._@-]")


class JournalUnavailableError(Exception):
    """No journal file can be made or written now; `reason` is what the loss is counted under."""

    def __init__(self, reason: GapReason) -> None:
        super().__init__(str(reason))
        self.reason = reason


@dataclass(frozen=True, slots=True)
class JournalHeader:
    """What every journal file of a process says about itself."""

    installation: str
    facts: Mapping[str, str | int | None]

    def to_json(self) -> bytes:
        """The JSON of the header page."""
        return json.dumps({"installation": self.installation, **self.facts}, sort_keys=True).encode()


def reason_of(error: OSError) -> GapReason:
    """Why the operating system refused, as a gap reason."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return GapReason.DISK_FULL
    if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOENT, errno.ENOTDIR, errno.EEXIST):
        return GapReason.READ_ONLY
    return GapReason.SERIALISE


def header_page(header: JournalHeader, checks_at: int, slots_at: int, slots: int, ordinal: int) -> bytes:
    """The bytes of page 0."""
    text = header.to_json()
    if len(text) > CLOSING - HEADER.size - 16:
        raise ValueError(f"the journal header is {len(text)} bytes; {CLOSING - HEADER.size - 16} fit")
    page = bytearray(PAGE)
    HEADER.pack_into(
        page, 0, MAGIC, layout.LAYOUT_VERSION, SLOT, checks_at, slots_at, slots,
        time.time_ns(), time.monotonic_ns(), os.getpid(), ordinal,
    )  # fmt: skip
    at = HEADER.size
    page[at : at + 8] = len(text).to_bytes(4, "little") + zlib.crc32(bytes(page[: HEADER.size]) + text).to_bytes(
        4, "little"
    )
    page[at + 8 : at + 8 + len(text)] = text
    return bytes(page)


def close_record(state: int, taken: int, written: int, lost: int) -> bytes:
    """The closing record: `state` 1 closed, 2 continued in the next file."""
    head = CLOSE.pack(state, taken, written, lost, 0)[:-8]
    return head + zlib.crc32(head).to_bytes(8, "little")


def new_path(folder: Path, installation: str, ordinal: int) -> Path:
    """A name no other process uses: installation, process, start, ordinal."""
    name = _UNSAFE.sub("_", installation)  # a name may hold "/"; the header has it as it is
    return folder / f"{name}-{os.getpid()}-{time.time_ns():x}{os.urandom(2).hex()}-{ordinal}{SUFFIX}"


def open_private(path: Path) -> int:
    """A new file, 0600, locked for as long as its process lives: a reader that gets the lock knows it is abandoned."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with contextlib.suppress(OSError):  # a file system without locks: the reader then goes by the process id
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return handle


def close_private(handle: int) -> None:
    """Let go of a file for good. A child that was forked meanwhile may hold it too, and must not keep it locked."""
    with contextlib.suppress(OSError):
        fcntl.flock(handle, fcntl.LOCK_UN)
    os.close(handle)


def unlinked(handle: int) -> bool:
    """Whether the file of an open handle has no name any more; False once the handle is closed (-1)."""
    try:
        return handle >= 0 and os.fstat(handle).st_nlink == 0
    except OSError:  # another thread has closed it meanwhile
        return False


def repeated(slot: bytes | bytearray) -> bool:
    """Whether a slot holds nothing that only its file holds: it is void, or part of an entry later files repeat."""
    return slot[0] == Kind.VOID or (slot[0] == Kind.DICTIONARY and any(slot[8:16]))


class NoJournal:
    """No file can be had now: every record is counted under the reason until the keeper has one again."""

    end = 0
    words = NO_WORDS
    reals = NO_REALS
    places: Iterator[int] = itertools.repeat(0)

    def __init__(self, reason: GapReason) -> None:
        self.reason = reason

    def put(self, slot: bytes) -> bool | None:  # noqa: ARG002 - the others need it
        """Refuse.

        Raises:
            JournalUnavailableError: always, with the reason.
        """
        raise JournalUnavailableError(self.reason)

    def put_entry(self, slot: bytes) -> bool | None:  # noqa: ARG002 - the others need it
        """Nothing to do: the next file gets every entry at its head."""
        return True

    def used(self) -> int:
        """Nothing."""
        return 0

    def recorded(self) -> bool:
        """There is nothing in it."""
        return False

    def usable(self) -> bool:
        """No record can be taken."""
        return False

    def stop(self) -> None:
        """Nothing is handed out."""

    def vanished(self) -> bool:
        """There is nothing to unlink."""
        return False

    def populate(self) -> None:
        """Nothing to do."""

    def check_pages(self) -> int:
        """Nothing to do."""
        return 0

    def settled(self) -> bool:
        """Nothing is under way."""
        return True

    def close(self, state: int, written: int, lost: int, wait_s: float = 0.0) -> None:
        """Nothing to close."""

    def discard(self) -> None:
        """Nothing to remove."""

    def forget(self) -> None:
        """Nothing to forget."""
