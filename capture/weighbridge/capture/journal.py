"""The journal: where records go so that a SIGKILL at any instant loses none that was finished.

`MappedJournal` is a preallocated, shared mapping: storing a record is one `pack_into` with the commit word last, and
the kernel keeps the page when the process dies. `FileJournal` is the fallback where no mapping can be had (some
network and sandbox file systems, free-threaded builds): a writer thread appends, and a finish waits for it no longer
than the configured time. Both write the same bytes. Only files of our own folder are mapped and they are never
truncated: cutting a mapped file kills the process that maps it.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import itertools
import json
import mmap
import os
import queue
import threading
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from weighbridge.capture import layout
from weighbridge.capture.layout import CHECKED, CLOSE, CLOSING, COMMIT, HEADER, MAGIC, PAGE, SLOT, SLOTS_PER_PAGE
from weighbridge.schemas.enumerations import GapReason

SUFFIX: Final = ".journal"
SEGMENT_BYTES: Final = 4 << 20
_POPULATE_WRITE: Final = 23  # MADV_POPULATE_WRITE, Linux 5.14
_AHEAD: Final = 64 << 10
_EMPTY: Final = bytes(8)
_GRACE_S: Final = 10.0


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
    if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
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


def open_private(path: Path) -> int:
    """A new file, 0600, locked for as long as its process lives: a reader that gets the lock knows it is abandoned."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with contextlib.suppress(OSError):  # a file system without locks: the reader then goes by the process id
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return handle


class MappedJournal:
    """One mapped journal file. `take()` gives the offset of a fresh slot and never the same twice (under the GIL)."""

    __slots__ = (
        "_checked", "_handle", "_populated", "_scan", "buffer", "end", "full_since", "ordinal", "path", "slots",
        "slots_at", "take",
    )  # fmt: skip

    def __init__(self, path: Path, header: JournalHeader, ordinal: int, size: int = SEGMENT_BYTES) -> None:
        self.path = path
        self.ordinal = ordinal
        pages = max(1, (size - 3 * PAGE) // PAGE)
        check_bytes = -(-pages * 8 // PAGE) * PAGE
        self.slots = pages * SLOTS_PER_PAGE
        self.slots_at = PAGE + check_bytes
        total = self.slots_at + pages * PAGE
        try:
            self._handle = open_private(path)
        except OSError as error:
            raise JournalUnavailableError(reason_of(error)) from error
        try:
            os.posix_fallocate(self._handle, 0, total)
            self.buffer = mmap.mmap(self._handle, total, mmap.MAP_SHARED)
        except OSError as error:
            os.close(self._handle)
            path.unlink(missing_ok=True)
            raise JournalUnavailableError(reason_of(error)) from error
        self.buffer[:PAGE] = header_page(header, PAGE, self.slots_at, self.slots, ordinal)
        self.end = total
        self.take: Callable[[], int] = itertools.count(self.slots_at, SLOT).__next__
        self.full_since: float | None = None
        self._scan = self.slots_at
        self._checked = 0
        self._populated = 0
        self.populate()

    def used(self) -> int:
        """Slots from the first to the last committed one, as far as the keeper has looked."""
        buffer, at = self.buffer, self._scan
        while at < self.end:
            window = range(at, min(at + 8 * PAGE, self.end), SLOT)
            last = -1
            for offset in window:
                if buffer[offset + COMMIT : offset + SLOT] != _EMPTY:
                    last = offset
            if last < 0:
                break
            at = last + SLOT
        self._scan = at
        return (at - self.slots_at) // SLOT

    def populate(self) -> None:
        """Make the pages just ahead writable now, so that no record pays the page fault."""
        target = min(self._scan + _AHEAD, self.end)
        start = max(self._populated, self._scan - self._scan % PAGE)
        if target <= start:
            return
        try:
            self.buffer.madvise(_POPULATE_WRITE, start - start % PAGE, target - start + start % PAGE)
        except (OSError, ValueError):
            return  # an older kernel: the first record of a page pays
        self._populated = target

    def check_pages(self) -> int:
        """Compute the checksum of every page that is full; how many were added."""
        buffer, added = self.buffer, 0
        pages = self.slots // SLOTS_PER_PAGE
        while self._checked < pages:
            at = self.slots_at + self._checked * PAGE
            if any(
                int.from_bytes(buffer[slot + COMMIT : slot + SLOT], "little") != slot
                for slot in range(at, at + PAGE, SLOT)
            ):
                break
            self._store_check(self._checked)
            self._checked += 1
            added += 1
        return added

    def _store_check(self, page: int) -> None:
        at = self.slots_at + page * PAGE
        word = zlib.crc32(self.buffer[at : at + PAGE]) | CHECKED
        self.buffer[PAGE + page * 8 : PAGE + page * 8 + 8] = word.to_bytes(8, "little")

    def store(self, offset: int, slot: bytes) -> None:
        """Put a rendered slot at an offset that was taken, commit word last."""
        self.buffer[offset : offset + COMMIT] = slot[:COMMIT]
        self.buffer[offset + COMMIT : offset + SLOT] = offset.to_bytes(8, "little")

    def put(self, slot: bytes) -> bool | None:
        """Store a rendered slot; None when the file is full."""
        offset = self.take()
        if offset >= self.end:
            return None
        self.store(offset, slot)
        return True

    def settled(self) -> bool:
        """Whether every slot of this full file is committed, or a store under way has had ten seconds to finish."""
        if self.full_since is None:
            self.full_since = time.monotonic()
        return self.used() >= self.slots or time.monotonic() - self.full_since > _GRACE_S

    def close(self, state: int, written: int, lost: int) -> None:
        """Check all pages that hold anything, store the closing record, sync and let go of the file."""
        used = self.used()
        self.check_pages()
        for page in range(self._checked, -(-used // SLOTS_PER_PAGE)):
            self._store_check(page)
        record = close_record(state, used, written, lost)
        self.buffer[CLOSING : CLOSING + len(record)] = record
        self.buffer.flush()
        os.close(self._handle)

    def discard(self) -> None:
        """Remove a file that was prepared and never used."""
        os.close(self._handle)
        self.path.unlink(missing_ok=True)

    def forget(self) -> None:
        """In a forked child: drop the parent's file without touching it."""
        os.close(self._handle)


class FileJournal:
    """The fallback: the same bytes, appended by a writer thread. A finish waits at most `wait_s` for its record."""

    def __init__(
        self, path: Path, header: JournalHeader, ordinal: int, *, wait_s: float, buffer_bytes: int,
        write: Callable[[int, bytes], int] = os.write,
    ) -> None:  # fmt: skip
        self.path = path
        self.ordinal = ordinal
        self.slots = (SEGMENT_BYTES - 2 * PAGE) // SLOT
        self._wait_s = wait_s
        self._room = threading.BoundedSemaphore(max(1, buffer_bytes // SLOT))
        self._write = write
        self._queue: queue.SimpleQueue[tuple[bytearray, threading.Event] | None] = queue.SimpleQueue()
        self._taken = 0
        self._given = 0
        self.failed: GapReason | None = None
        try:
            self._handle = open_private(path)
            self._put(header_page(header, 0, PAGE, self.slots, ordinal))
        except OSError as error:
            raise JournalUnavailableError(reason_of(error)) from error
        self._thread = threading.Thread(target=self._run, name="weighbridge-journal", daemon=True)
        self._thread.start()

    end = 0  # no offset is ever below it: every finish takes the slow path
    buffer = b""

    def take(self) -> int:
        """No offset to store at."""
        return 0

    def put(self, slot: bytes) -> bool | None:
        """Hand over one slot (its commit word is set by the writer). True when it is in the file, None when it is full.

        Raises:
            JournalUnavailableError: the buffer is full or the file cannot be written; the record was not taken.
        """
        if self.failed is not None:
            raise JournalUnavailableError(self.failed)
        if self._given >= self.slots:
            return None
        self._given += 1
        if not self._room.acquire(blocking=False):
            raise JournalUnavailableError(GapReason.SLOW_DISK)
        done = threading.Event()
        self._queue.put((bytearray(slot), done))
        return done.wait(self._wait_s)

    def used(self) -> int:
        """Slots that are in the file."""
        return self._taken

    def populate(self) -> None:
        """Nothing to do: there is no mapping."""

    def check_pages(self) -> int:
        """Nothing to do: checksums of pages need the mapping."""
        return 0

    def settled(self) -> bool:
        """Whether everything that was handed over is written, or never will be."""
        return self.failed is not None or self._taken >= self._given

    def _run(self) -> None:
        while (item := self._queue.get()) is not None:
            slot, done = item
            slot[COMMIT:SLOT] = (PAGE + self._taken * SLOT).to_bytes(8, "little")
            try:
                self._put(bytes(slot))
                self._taken += 1
                done.set()
            except OSError as error:
                self.failed = reason_of(error)
            finally:
                self._room.release()

    def _put(self, data: bytes) -> None:
        at = 0
        while at < len(data):
            at += self._write(self._handle, data[at:])

    def close(self, state: int, written: int, lost: int) -> None:
        """Write what waits, then the closing record."""
        self._queue.put(None)
        self._thread.join(timeout=10)
        os.pwrite(self._handle, close_record(state, self._taken, written, lost), CLOSING)
        os.fsync(self._handle)
        os.close(self._handle)

    def forget(self) -> None:
        """In a forked child: drop the parent's file without touching it."""
        os.close(self._handle)


class NoJournal:
    """No file can be had now: every record is counted under the reason until the keeper has one again."""

    end = 0
    buffer = b""

    def __init__(self, reason: GapReason) -> None:
        self.reason = reason

    def take(self) -> int:
        """No offset to store at."""
        return 0

    def put(self, slot: bytes) -> bool | None:  # noqa: ARG002 - the others need it
        """Refuse.

        Raises:
            JournalUnavailableError: always, with the reason.
        """
        raise JournalUnavailableError(self.reason)

    def used(self) -> int:
        """Nothing."""
        return 0

    def populate(self) -> None:
        """Nothing to do."""

    def check_pages(self) -> int:
        """Nothing to do."""
        return 0

    def settled(self) -> bool:
        """Nothing is under way."""
        return True

    def close(self, state: int, written: int, lost: int) -> None:
        """Nothing to close."""

    def forget(self) -> None:
        """Nothing to forget."""


def spool_bytes(folder: Path) -> int:
    """Bytes of all files in the spool, sealed segments included; a file that vanishes meanwhile counts nothing."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.stat(os.path.join(parent, name)).st_blocks * 512  # noqa: PTH116, PTH118 - no Path per file
            except OSError:
                continue
    return total


def new_path(folder: Path, installation: str, ordinal: int) -> Path:
    """A name no other process uses: installation, process, start, ordinal."""
    return folder / f"{installation}-{os.getpid()}-{time.time_ns():x}-{ordinal}{SUFFIX}"


def dictionary_slots(kind: int, number: int, payload: bytes) -> Sequence[bytes]:
    """A dictionary entry cut into slots: five integers (tag, number, part, parts, length, crc), then its bytes."""
    room = COMMIT - 48
    parts = [payload[at : at + room] for at in range(0, len(payload), room)] or [b""]
    crc = zlib.crc32(payload)
    out = []
    for part, chunk in enumerate(parts):
        slot = bytearray(SLOT)
        for index, word in enumerate((layout.Kind.DICTIONARY | kind << 8, number, part, len(parts), len(payload), crc)):
            slot[index * 8 : index * 8 + 8] = word.to_bytes(8, "little", signed=True)
        slot[48 : 48 + len(chunk)] = chunk
        out.append(bytes(slot))
    return out
