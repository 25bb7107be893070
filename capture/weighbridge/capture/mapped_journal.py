"""The journal that is a mapping: storing a record is one row of integers with the commit word last.

The file is preallocated, and the kernel keeps its pages when the process dies. Only files of our own folder are mapped
and they are never truncated: cutting a mapped file kills the process that maps it.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import mmap
import os
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from weighbridge.capture.journal import (
    GRACE_S,
    SEGMENT_BYTES,
    JournalHeader,
    JournalUnavailableError,
    close_private,
    close_record,
    header_page,
    open_private,
    reason_of,
    repeated,
    unlinked,
)
from weighbridge.capture.layout import CHECKED, CLOSING, COMMIT, PAGE, RESERVE, SLOT, SLOTS_PER_PAGE, WORDS, Kind
from weighbridge.capture.losses import REASONS, Loss, gap_of, gap_slot
from weighbridge.schemas.enumerations import GapReason

_POPULATE_WRITE: Final = 23  # MADV_POPULATE_WRITE, Linux 5.14
_AHEAD: Final = 64 << 10
_EMPTY: Final = bytes(8)
_VOID: Final = bytes((Kind.VOID,)) + bytes(SLOT - 1)
_NO_MAPPING: Final = (errno.ENODEV, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)


class UnmappableError(JournalUnavailableError):
    """Files of this folder cannot be mapped or preallocated at all; the fallback may do."""


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
        pages = max(RESERVE // SLOTS_PER_PAGE + 1, (size // PAGE - 1) * PAGE // (PAGE + 8))
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
            self.discard()
            kind = UnmappableError if error.errno in _NO_MAPPING else JournalUnavailableError
            raise kind(reason_of(error)) from error
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
        end = self._last()
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

    def recorded(self) -> bool:
        """Whether it holds anything that only it holds, beside the entries that every file repeats."""
        end = self.slots_at + self.used() * SLOT
        return any(
            self.buffer[at + COMMIT : at + SLOT] != _EMPTY and not repeated(self.buffer[at : at + 16])
            for at in range(self.slots_at, end, SLOT)
        )

    def usable(self) -> bool:
        """Whether records can go on into it, or into the file it is followed by."""
        return not self.vanished()

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
        """Whether an offset that was taken is that of a slot of ours, though the file was stopped in the meantime."""
        return offset < (self._last() if self._limit is None else self._limit)

    def _last(self) -> int:
        """The offset after the last slot that is handed out."""
        return self.slots_at + (self.slots - RESERVE) * SLOT

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

    def put_gap(self, reason: GapReason, loss: Loss) -> None:
        """Add a loss to the reserved slot of its reason: for when there is no other file to write it to."""
        at = self.slots_at + (self.slots - RESERVE + REASONS.index(reason)) * SLOT
        before = gap_of(self.buffer[at : at + SLOT])
        if before is not None:
            loss.add(before[1])
        self.store(at, gap_slot(reason, loss))

    def stop(self) -> None:
        """Hand out no more slots. Whoever was given one before may still be storing."""
        if self._limit is None:
            # In this order: who passes the test against `end` has taken a slot below the limit.
            self.end = 0
            self._limit = min(next(self.places), self._last())
            self._since = time.monotonic()

    def settled(self) -> bool:
        """Whether every slot handed out is committed; a store under way gets ten seconds. Only after `stop`."""
        return self._all_committed() or time.monotonic() - self._since > GRACE_S

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
        self._reach_last()
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
        self._let_go()

    def _reach_last(self) -> None:
        """Move the limit behind what was voided beyond it: a slot that was taken while the limit was being set."""
        assert self._limit is not None
        commits = self.words[(self._limit >> 3) + WORDS : self._last() >> 3 : SLOT >> 3].tolist()
        beyond = [number for number, commit in enumerate(commits) if commit]
        for number in range(beyond[-1] if beyond else 0):
            if not commits[number]:
                self.void(self._limit + number * SLOT)
        if beyond:
            self._limit += (beyond[-1] + 1) * SLOT

    def _let_go(self) -> None:
        """Close the file, and never twice: its number may be that of another file by then."""
        handle, self._handle = self._handle, -1
        if handle >= 0:
            close_private(handle)

    def vanished(self) -> bool:
        """Whether the file was unlinked under us: what it holds would be gone with this process."""
        return unlinked(self._handle)

    def rescued(self) -> Iterator[bytes]:
        """Every committed slot, for another file."""
        for at in range(self.slots_at, self.slots_at + self.slots * SLOT, SLOT):
            slot = self.buffer[at : at + SLOT]
            if int.from_bytes(slot[COMMIT:], "little") == at and slot[0] != Kind.VOID:
                yield slot

    def discard(self) -> None:
        """Remove a file that was prepared and never used."""
        self._let_go()
        self.path.unlink(missing_ok=True)

    def forget(self) -> None:
        """In a forked child: drop the parent's file without touching it, nor the parent's lock on it.

        Whoever was forked in the middle of a finish still holds this object: none of its offsets is a slot any more.
        """
        self.end = self.slots = self._limit = 0
        handle, self._handle = self._handle, -1
        with contextlib.suppress(OSError):
            os.close(handle)
        with contextlib.suppress(BufferError):
            self.words.release()
            self.reals.release()
            self.buffer.close()
