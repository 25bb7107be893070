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
import re
import struct
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from weighbridge.capture import layout
from weighbridge.capture.layout import (
    CHECKED,
    CLOSE,
    CLOSING,
    COMMIT,
    HEADER,
    MAGIC,
    PAGE,
    RESERVE,
    SLOT,
    SLOTS_PER_PAGE,
    Kind,
)
from weighbridge.schemas.enumerations import GapReason

SUFFIX: Final = ".journal"
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._@-]")
SEGMENT_BYTES: Final = 4 << 20
_POPULATE_WRITE: Final = 23  # MADV_POPULATE_WRITE, Linux 5.14
_AHEAD: Final = 64 << 10
_EMPTY: Final = bytes(8)
_VOID: Final = bytes((Kind.VOID,)) + bytes(SLOT - 1)
_GAP: Final = struct.Struct("<6q")
_WAITING_BYTES: Final = 2048  # a slot in the queue of the fallback, with all that Python puts around it
_Waiting = tuple[bytearray, threading.Event, bool]
_GRACE_S: Final = 10.0
# Slots are little-endian, a memoryview has the order of the machine; without the GIL two could be given one place.
MAPPABLE: Final = sys.byteorder == "little" and getattr(sys, "_is_gil_enabled", lambda: True)()
_NO_WORDS: Final = memoryview(b"").cast("q")
_NO_REALS: Final = memoryview(b"").cast("d")


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


def open_private(path: Path) -> int:
    """A new file, 0600, locked for as long as its process lives: a reader that gets the lock knows it is abandoned."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with contextlib.suppress(OSError):  # a file system without locks: the reader then goes by the process id
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return handle


class MappedJournal:
    """One mapped journal file.

    Attributes:
        places: `next` gives the offset of a fresh slot and never the same twice (under the GIL).
        words, reals: the whole file as 64-bit integers, and as doubles.
        end: offsets from here on are refused; 0 once no slot is handed out any more.
    """

    __slots__ = (
        "_checked", "_handle", "_limit", "_scan", "_since", "_waiting", "buffer", "end", "ordinal", "path", "places",
        "reals", "slots", "slots_at", "words",
    )  # fmt: skip

    def __init__(self, path: Path, header: JournalHeader, ordinal: int, size: int = SEGMENT_BYTES) -> None:
        self.path = path
        self.ordinal = ordinal
        pages = max(RESERVE // SLOTS_PER_PAGE + 1, (size - 3 * PAGE) // PAGE)
        check_bytes = -(-pages * 8 // PAGE) * PAGE
        self.slots = pages * SLOTS_PER_PAGE
        self.slots_at = PAGE + check_bytes
        total = self.slots_at + pages * PAGE
        first = header_page(header, PAGE, self.slots_at, self.slots, ordinal)
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
        self.words = memoryview(self.buffer).cast("q")
        self.reals = memoryview(self.buffer).cast("d")
        self.buffer[:PAGE] = first
        self.end = total - RESERVE * SLOT
        self.places: Iterator[int] = itertools.count(self.slots_at, SLOT)
        self._limit: int | None = None
        self._since = 0.0
        self._scan = self.slots_at
        self._checked = 0
        self._waiting: list[int] = []
        self.populate()

    def used(self) -> int:
        """Slots from the first to the last committed one, as far as the keeper has looked."""
        buffer, at = self.buffer, self._scan
        end = self.slots_at + (self.slots - RESERVE) * SLOT
        while at < end:
            last = -1
            for offset in range(at, min(at + 8 * PAGE, end), SLOT):
                if buffer[offset + COMMIT : offset + SLOT] != _EMPTY:
                    last = offset
            if last < 0:
                break
            at = last + SLOT
        self._scan = at
        return (at - self.slots_at) // SLOT

    def populate(self) -> None:
        """Make the pages just ahead writable, so that no record pays the page fault.

        Again each time: write-back of a page that was made writable earlier has taken that from it.
        """
        start = self._scan - self._scan % PAGE
        with contextlib.suppress(OSError, ValueError):  # an older kernel: the first record of a page pays
            self.buffer.madvise(_POPULATE_WRITE, start, min(_AHEAD, len(self.buffer) - start))

    def check_pages(self) -> int:
        """Compute the checksum of every page that is full; how many were added. One with a hole is looked at again."""
        reached = self.used() // SLOTS_PER_PAGE
        waiting = [*self._waiting, *range(self._checked, reached)]
        self._checked = max(self._checked, reached)
        self._waiting = [page for page in waiting if not self._complete(page)]
        for page in waiting:
            if page not in self._waiting:
                self._store_check(page)
        return len(waiting) - len(self._waiting)

    def _complete(self, page: int, below: int | None = None) -> bool:
        at = self.slots_at + page * PAGE
        return all(
            int.from_bytes(self.buffer[slot + COMMIT : slot + SLOT], "little") == slot
            for slot in range(at, at + PAGE if below is None else min(at + PAGE, below), SLOT)
        )

    def _store_check(self, page: int) -> None:
        at = self.slots_at + page * PAGE
        word = zlib.crc32(self.buffer[at : at + PAGE]) | CHECKED
        self.buffer[PAGE + page * 8 : PAGE + page * 8 + 8] = word.to_bytes(8, "little")

    def store(self, offset: int, slot: bytes) -> None:
        """Put a rendered slot at an offset that was taken, commit word last."""
        self.buffer[offset : offset + COMMIT] = slot[:COMMIT]
        self.buffer[offset + COMMIT : offset + SLOT] = offset.to_bytes(8, "little")

    def holds(self, offset: int) -> bool:
        """Whether an offset that was taken is that of a slot, though the file was stopped in the meantime."""
        return offset < self.slots_at + (self.slots - RESERVE) * SLOT

    def void(self, offset: int) -> None:
        """Commit a slot that was taken and is not needed, so that its page can be checked."""
        self.store(offset, _VOID)

    def put(self, slot: bytes) -> bool | None:
        """Store a rendered slot; None when the file is full."""
        offset = next(self.places)
        if offset >= self.end:
            if self.holds(offset):
                self.void(offset)
            return None
        self.store(offset, slot)
        return True

    put_entry = put

    def put_gap(self, index: int, attempts: int, tokens: int, began_us: int, ended_us: int) -> None:
        """Add a loss to the reserved slot of its reason: for when there is no other file to write it to."""
        at = self.slots_at + (self.slots - RESERVE + index) * SLOT
        before = _GAP.unpack_from(self.buffer, at)
        if before[0] == Kind.GAP:
            attempts, tokens = attempts + before[2], tokens + before[3]
            began_us, ended_us = min(began_us, before[4]), max(ended_us, before[5])
        slot = bytearray(SLOT)
        _GAP.pack_into(slot, 0, Kind.GAP, index, attempts, tokens, began_us, ended_us)
        self.store(at, bytes(slot))

    def stop(self) -> None:
        """Hand out no more slots. Whoever was given one before may still be storing."""
        if self._limit is None:
            last = self.slots_at + (self.slots - RESERVE) * SLOT
            # In this order: who passes the test against `end` has taken a slot below the limit.
            self.end = 0
            self._limit = min(next(self.places), last)
            self._since = time.monotonic()

    def settled(self) -> bool:
        """Whether every slot handed out is committed; a store under way gets ten seconds. Only after `stop`."""
        return self._all_committed() or time.monotonic() - self._since > _GRACE_S

    def _all_committed(self) -> bool:
        self.check_pages()
        assert self._limit is not None
        pages = [*self._waiting, *range(self._checked, -(-(self._limit - self.slots_at) // PAGE))]
        return all(self._complete(page, self._limit) for page in pages)

    def close(self, state: int, written: int, lost: int, wait_s: float = 1.0) -> None:
        """Check all pages that hold anything, store the closing record, sync and let go of the file.

        A page with a slot whose store is still under way after `wait_s` gets no checksum: what is stored late is then
        read unchecked, while a checksum from before would make the reader refuse the whole page.
        """
        self.stop()
        assert self._limit is not None
        until = time.monotonic() + wait_s
        while not self._all_committed() and time.monotonic() < until:
            time.sleep(0.001)
        taken = (self._limit - self.slots_at) // SLOT
        first_reserved = (self.slots - RESERVE) // SLOTS_PER_PAGE
        for page in [*self._waiting, *range(self._checked, -(-taken // SLOTS_PER_PAGE))]:
            if self._complete(page, self._limit):
                self._store_check(page)
        for page in range(first_reserved, self.slots // SLOTS_PER_PAGE):
            self._store_check(page)
        record = close_record(state, taken, written, lost)
        self.buffer[CLOSING : CLOSING + len(record)] = record
        self.buffer.flush()
        os.close(self._handle)

    def vanished(self) -> bool:
        """Whether the file was unlinked under us: what it holds would be gone with this process."""
        return os.fstat(self._handle).st_nlink == 0

    def rescued(self) -> Iterator[bytes]:
        """Every committed slot, for another file."""
        for at in range(self.slots_at, self.slots_at + self.slots * SLOT, SLOT):
            slot = self.buffer[at : at + SLOT]
            if int.from_bytes(slot[COMMIT:], "little") == at and slot[0] != Kind.VOID:
                yield slot

    def discard(self) -> None:
        """Remove a file that was prepared and never used."""
        os.close(self._handle)
        self.path.unlink(missing_ok=True)

    def forget(self) -> None:
        """In a forked child: drop the parent's file without touching it, and with it the parent's lock."""
        os.close(self._handle)
        with contextlib.suppress(BufferError):
            self.words.release()
            self.reals.release()
            self.buffer.close()


class FileJournal:
    """The fallback: the same bytes, appended by a writer thread. A finish waits at most `wait_s` for its record."""

    def __init__(
        self, path: Path, header: JournalHeader, ordinal: int, *, wait_s: float, buffer_bytes: int,
        lost: Callable[[GapReason], None], write: Callable[[int, bytes], int] = os.write,
    ) -> None:  # fmt: skip
        self.path = path
        self.ordinal = ordinal
        self.slots = (SEGMENT_BYTES - 2 * PAGE) // SLOT
        self._wait_s = wait_s
        self._room = threading.BoundedSemaphore(max(1, buffer_bytes // _WAITING_BYTES))
        self._write = write
        self._lost = lost
        self._queue: queue.SimpleQueue[_Waiting | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._taken = 0
        self._given = 0
        self._stopped_at: float | None = None
        self.failed: GapReason | None = None
        try:
            self._handle = open_private(path)
            self._append(header_page(header, 0, PAGE, self.slots, ordinal))
        except OSError as error:
            raise JournalUnavailableError(reason_of(error)) from error
        self._thread = threading.Thread(target=self._run, name="weighbridge-journal", daemon=True)
        self._thread.start()

    end = 0  # no offset is ever below it: every finish takes the slow path
    words = _NO_WORDS
    reals = _NO_REALS
    places: Iterator[int] = itertools.repeat(0)

    def put(self, slot: bytes) -> bool | None:
        """Hand over one slot (its commit word is set by the writer). True when it is in the file, None when it is full.

        Raises:
            JournalUnavailableError: the buffer is full or the file cannot be written; the record was not taken.
        """
        if self.failed is not None:
            raise JournalUnavailableError(self.failed)
        if not self._room.acquire(blocking=False):
            raise JournalUnavailableError(GapReason.SLOW_DISK)
        done = self._give(slot, counted=True)
        if done is None:
            self._room.release()
            return None
        return done.wait(self._wait_s) and self.failed is None

    def put_entry(self, slot: bytes) -> bool | None:
        """Hand over a slot that records refer to: there is always room for it, and nobody waits."""
        return None if self._give(slot, counted=False) is None else True

    def _give(self, slot: bytes, *, counted: bool) -> threading.Event | None:
        done = threading.Event()
        with self._lock:
            if self._given >= self.slots or self._stopped_at is not None:
                return None
            self._given += 1
            self._queue.put((bytearray(slot), done, counted))
        return done

    def used(self) -> int:
        """Slots that are in the file."""
        return self._taken

    def populate(self) -> None:
        """Nothing to do: there is no mapping."""

    def check_pages(self) -> int:
        """Nothing to do: checksums of pages need the mapping."""
        return 0

    def stop(self) -> None:
        """Accept no more slots."""
        with self._lock:
            if self._stopped_at is None:
                self._stopped_at = time.monotonic()

    def settled(self) -> bool:
        """Whether everything that was handed over was written or counted as lost."""
        return self._queue.empty() or (self._stopped_at is not None and time.monotonic() - self._stopped_at > _GRACE_S)

    def _run(self) -> None:
        while (item := self._queue.get()) is not None:
            slot, done, counted = item
            try:
                if self.failed is None:
                    slot[COMMIT:SLOT] = (PAGE + self._taken * SLOT).to_bytes(8, "little")
                    self._append(bytes(slot))
                    self._taken += 1
            except Exception as error:  # noqa: BLE001 - the thread must outlive it, to count what waits
                # A slot may be half written: nothing more goes into this file.
                self.failed = reason_of(error) if isinstance(error, OSError) else GapReason.SERIALISE
            if self.failed is not None and counted and slot[0] == Kind.ATTEMPT:
                self._lost(self.failed)
            if counted:
                self._room.release()
            done.set()

    def _append(self, data: bytes) -> None:
        at = 0
        while at < len(data):
            at += self._write(self._handle, data[at:])

    def close(self, state: int, written: int, lost: int, wait_s: float = 10.0) -> None:
        """Write what waits, then the closing record. What a disk does not take in time is counted as lost."""
        self.stop()
        self._queue.put(None)
        self._thread.join(timeout=wait_s)
        if self._thread.is_alive():
            while True:
                try:
                    item = self._queue.get_nowait()
                except queue.Empty:
                    break
                if item is not None and item[2] and item[0][0] == Kind.ATTEMPT:
                    self._lost(GapReason.SLOW_DISK)
            self._queue.put(None)
            return
        if self.failed is None:
            os.pwrite(self._handle, close_record(state, self._taken, written, lost), CLOSING)
            os.fsync(self._handle)
        os.close(self._handle)

    def vanished(self) -> bool:
        """Whether the file was unlinked under us."""
        return os.fstat(self._handle).st_nlink == 0

    def discard(self) -> None:
        """Remove a file that was never used."""
        self.path.unlink(missing_ok=True)
        self._queue.put(None)

    def forget(self) -> None:
        """In a forked child: drop the parent's file without touching it."""
        os.close(self._handle)


class NoJournal:
    """No file can be had now: every record is counted under the reason until the keeper has one again."""

    end = 0
    words = _NO_WORDS
    reals = _NO_REALS
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
    name = _UNSAFE.sub("_", installation)  # a name may hold "/"; the header has it as it is
    return folder / f"{name}-{os.getpid()}-{time.time_ns():x}{os.urandom(2).hex()}-{ordinal}{SUFFIX}"


def entry_check(kind: int, number: int, parts: int, payload: bytes) -> int:
    """CRC-32 of a dictionary entry, its number included: a number that changed would give a record other words."""
    return zlib.crc32(payload, zlib.crc32(struct.pack("<3q", kind, number, parts)))


def dictionary_slots(kind: int, number: int, payload: bytes) -> Sequence[bytes]:
    """A dictionary entry cut into slots: five integers (tag, number, part, parts, length, crc), then its bytes."""
    room = COMMIT - 48
    parts = [payload[at : at + room] for at in range(0, len(payload), room)] or [b""]
    crc = entry_check(kind, number, len(parts), payload)
    out = []
    for part, chunk in enumerate(parts):
        slot = bytearray(SLOT)
        for index, word in enumerate((layout.Kind.DICTIONARY | kind << 8, number, part, len(parts), len(payload), crc)):
            slot[index * 8 : index * 8 + 8] = word.to_bytes(8, "little", signed=True)
        slot[48 : 48 + len(chunk)] = chunk
        out.append(bytes(slot))
    return out
