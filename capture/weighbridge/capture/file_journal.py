"""The fallback: the same bytes, appended by a writer thread. A finish waits for its record no longer than configured.

For where no mapping can be had: some network and sandbox file systems, free-threaded builds, big-endian machines.
"""

from __future__ import annotations

import itertools
import os
import queue
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from weighbridge.capture.journal import (
    GRACE_S,
    NO_REALS,
    NO_WORDS,
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
from weighbridge.capture.layout import CLOSING, COMMIT, PAGE, SLOT, Kind
from weighbridge.capture.losses import Losses, gap_of
from weighbridge.schemas.enumerations import GapReason

_WAITING_BYTES: Final = 2048  # a slot in the queue, with all that Python puts around it
_Waiting = tuple[bytearray, threading.Event, bool]


class FileJournal:
    """One file, its queue and the thread that writes it."""

    end = 0  # no offset is ever below it: every finish takes the slow path
    words = NO_WORDS
    reals = NO_REALS
    places: Iterator[int] = itertools.repeat(0)

    def __init__(
        self, path: Path, header: JournalHeader, ordinal: int, size: int = SEGMENT_BYTES, *, wait_s: float,
        buffer_bytes: int, losses: Losses, write: Callable[[int, bytes], int] = os.write,
    ) -> None:  # fmt: skip
        self.path = path
        self.ordinal = ordinal
        self.slots = max(1, (size - PAGE) // SLOT)
        self._wait_s = wait_s
        self._room = max(1, buffer_bytes // _WAITING_BYTES)
        self._write = write
        self._losses = losses
        self._queue: queue.SimpleQueue[_Waiting | None] = queue.SimpleQueue()
        self._lock = threading.RLock()  # of two threads, and of a signal handler in the middle of a finish
        self._taken = 0
        self._given = 0
        self._records = 0
        self._settled = 0  # of the records; only the writer counts it up, so that he waits for nobody
        self._recorded = False
        self._stopped_at: float | None = None
        self._left = False
        self.failed: GapReason | None = None
        try:
            self._handle = open_private(path)
        except OSError as error:
            raise JournalUnavailableError(reason_of(error)) from error
        try:
            self._append(header_page(header, 0, PAGE, self.slots, ordinal))
        except OSError as error:
            self._let_go()
            path.unlink(missing_ok=True)
            raise JournalUnavailableError(reason_of(error)) from error
        self._thread = threading.Thread(target=self._run, name="weighbridge-journal", daemon=True)
        try:
            self._thread.start()
        except RuntimeError as error:  # no thread to be had, as when the interpreter ends
            self._let_go()
            path.unlink(missing_ok=True)
            raise JournalUnavailableError(GapReason.SERIALISE) from error

    def put(self, slot: bytes) -> bool | None:
        """Hand over one slot (its commit word is set by the writer). True when it is in the file, None when it is full.

        Raises:
            JournalUnavailableError: the buffer is full or the file cannot be written; the record was not taken.
        """
        if self.failed is not None:
            raise JournalUnavailableError(self.failed)
        done = self._give(slot, counted=True)
        return None if done is None else done.wait(self._wait_s) and self.failed is None

    def put_entry(self, slot: bytes) -> bool | None:
        """Hand over a slot that records refer to: there is always room for it, and nobody waits."""
        return None if self._give(slot, counted=False) is None else True

    def _give(self, slot: bytes, *, counted: bool) -> threading.Event | None:
        done = threading.Event()
        with self._lock:
            if self._given >= self.slots or self._stopped_at is not None:
                return None
            if counted:
                if self._records - self._settled >= self._room:
                    raise JournalUnavailableError(GapReason.SLOW_DISK)
                self._records += 1
            self._given += 1
            self._queue.put((bytearray(slot), done, counted))
        return done

    def used(self) -> int:
        """Slots that are in the file."""
        return self._taken

    def recorded(self) -> bool:
        """Whether it holds anything that only it holds, beside the entries that every file repeats."""
        return self._recorded

    def usable(self) -> bool:
        """Whether records can go on into it, or into the file it is followed by."""
        return self.failed is None and not self.vanished()

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
        return self._queue.empty() or (self._stopped_at is not None and time.monotonic() - self._stopped_at > GRACE_S)

    def _run(self) -> None:
        while (item := self._queue.get()) is not None:
            slot, done, counted = item
            try:
                if self.failed is None:
                    slot[COMMIT:SLOT] = (PAGE + self._taken * SLOT).to_bytes(8, "little")
                    self._append(bytes(slot))
                    self._taken += 1
                    self._recorded = self._recorded or not repeated(slot)
            except Exception as error:  # noqa: BLE001 - the thread must outlive it, to count what waits
                # A slot may be half written: nothing more goes into this file.
                self.failed = reason_of(error) if isinstance(error, OSError) else GapReason.SERIALISE
            if self.failed is not None and counted:
                self._lose(slot, self.failed)
            self._settled += counted
            done.set()
        if self._left:
            self._let_go()

    def _lose(self, slot: bytearray, reason: GapReason) -> None:
        """Count a slot that will not be written; what it says was lost before is not lost with it."""
        told = gap_of(slot)
        if told is None:
            self._losses.count(reason, int(slot[0] == Kind.ATTEMPT))
        else:
            self._losses.give_back(*told)

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
                if item is not None and item[2]:
                    self._lose(item[0], GapReason.SLOW_DISK)
            self._left = True
            self._queue.put(None)
            self._thread.join(timeout=0)
            if not self._thread.is_alive():
                self._let_go()
            return
        try:
            if self.failed is None:
                os.pwrite(self._handle, close_record(state, self._taken, written, lost), CLOSING)
                os.fsync(self._handle)
        finally:
            self._let_go()

    def _let_go(self) -> None:
        """Close the file, and never twice: its number may be that of another file by then."""
        handle, self._handle = self._handle, -1
        if handle >= 0:
            close_private(handle)

    def vanished(self) -> bool:
        """Whether the file was unlinked under us."""
        return unlinked(self._handle)

    def discard(self) -> None:
        """Remove a file that was never used; its thread lets go of it."""
        self._left = True
        self.path.unlink(missing_ok=True)
        self._queue.put(None)

    def forget(self) -> None:
        """In a forked child, where its thread does not run: drop the parent's file without touching it."""
        handle, self._handle = self._handle, -1
        if handle >= 0:
            os.close(handle)
