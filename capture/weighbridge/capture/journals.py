"""The journals of one process: the present one, the next, and those it went on from.

A file that is full, old, lost or of another policy is followed by the next one; the request path finds the present one
in `Present`, and comes here only when it is full. Whoever changes which file is present holds the dictionary's lock.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from weighbridge.capture.dictionary import Dictionary, Entry, dictionary_slots
from weighbridge.capture.file_journal import FileJournal
from weighbridge.capture.gap_journal import GapJournal
from weighbridge.capture.guard import Guard, report
from weighbridge.capture.journal import (
    MAPPABLE,
    JournalHeader,
    JournalUnavailableError,
    NoJournal,
    new_path,
    reason_of,
)
from weighbridge.capture.layout import FRESH, SLOT, Kind
from weighbridge.capture.limits import Limits
from weighbridge.capture.losses import Loss, Losses, gap_of, gap_slot
from weighbridge.capture.mapped_journal import MappedJournal, UnmappableError
from weighbridge.capture.present import Journal, Present
from weighbridge.capture.quota import Quota
from weighbridge.schemas.enumerations import GapReason

_BUSY_S: Final = 5.0  # for so long after a file was full the next one is kept ready
_KEEPER_WAIT_S: Final = 1.0  # for its turn in the spool
_QUIET_BYTES: Final = 256 << 10  # of the file that follows an old one; each stays on disk until it is sealed


class Journals:
    """The files of one process. Nothing here may be called with a lock held that is not the dictionary's.

    Attributes:
        unopened: in a forked child, which gets its files at its first record.
        closed: no file is made any more; what is lost from then on goes into a file of gap records.
        quota: the bound of the spool.
    """

    def __init__(
        self, present: Present, spool: Path, limits: Limits, header: Callable[[], JournalHeader],
        dictionary: Dictionary, losses: Losses, rolled: Callable[[], None],
    ) -> None:  # fmt: skip
        self._present = present
        self._spool = spool
        self._limits = limits
        self._header = header
        self._dictionary = dictionary
        self._losses = losses
        self._rolled = rolled
        self._ordinals = itertools.count()
        self._next: MappedJournal | None = None
        self._old: list[Journal] = []
        self._mapped = limits.mapped and MAPPABLE
        self._retiring = threading.RLock()
        self._rolled_at = -_BUSY_S
        self._held: tuple[int, float] | None = None
        self.unopened = False
        self.closed = False
        self.quota = Quota(spool, limits.spool_bytes)
        self._gaps = GapJournal(self._gap_place, self.quota)

    # -- making files --------------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Make the first file (under the lock)."""
        self.unopened = False
        self._present.journal = self.filled(self._file(self._limits.wait_s))

    def _file(self, wait_s: float, size: int | None = None) -> Journal:
        """A new file, empty."""
        try:
            self._spool.mkdir(mode=0o700, parents=True, exist_ok=True)
            size = max(size or self._limits.journal_bytes, 8 * SLOT * len(self._dictionary.in_use()))
            header = self._header()
            ordinal = next(self._ordinals)
            path = new_path(self._spool, header.installation, ordinal)
            with self.quota.room(size, wait_s):
                if self._mapped:
                    try:
                        return MappedJournal(path, header, ordinal, size)
                    except UnmappableError as error:
                        report(error, "mapping")
                        self._mapped = False
                return FileJournal(
                    path,
                    header,
                    ordinal,
                    size,
                    wait_s=self._limits.wait_s,
                    buffer_bytes=self._limits.buffer_bytes,
                    losses=self._losses,
                )
        except JournalUnavailableError as error:
            return NoJournal(error.reason)
        except (OSError, ValueError) as error:
            report(error, "spool")
            return NoJournal(reason_of(error) if isinstance(error, OSError) else GapReason.SERIALISE)

    def filled(self, journal: Journal) -> Journal:
        """The file with every entry at its head that a record may still refer to (under the lock)."""
        if isinstance(journal, NoJournal):
            return journal
        for stored in self._dictionary.keep(journal.slots // 8):
            if any(journal.put_entry(slot) is None for slot in dictionary_slots(*stored)):
                journal.discard()
                return NoJournal(GapReason.BUFFER_FULL)
        return journal

    def prepare(self) -> None:
        """Make the next file while the present one still has room (keeper only)."""
        journal = self._present.journal
        if isinstance(journal, NoJournal):
            if not self.unopened and not self.closed:
                self.replace(journal)
        elif isinstance(journal, MappedJournal) and self._next is None:
            busy = time.monotonic() - self._rolled_at < _BUSY_S
            if busy or journal.used() * 2 > journal.slots:
                made = self._file(_KEEPER_WAIT_S)
                with self._dictionary.lock:
                    made = NoJournal(GapReason.SHUTDOWN) if self._refused(made) else self.filled(made)
                    if isinstance(made, MappedJournal):
                        self._next = made

    def _refused(self, made: Journal) -> bool:
        """Whether a file came too late: the recorder was closed meanwhile (under the lock)."""
        if self.closed:
            made.discard()
        return self.closed

    # -- going on in the next file -------------------------------------------------------------------------------------

    def roll(self, full: Journal) -> None:
        """Go on in the next file, if `full` is still the present one."""
        with self._dictionary.lock:
            if self._present.journal is not full:
                return
            ready, self._next = self._next, None
            self.change(full, ready or self.filled(self._file(self._limits.wait_s)))
            self._rolled_at = time.monotonic()
        self._rolled()

    def replace(self, journal: Journal, size: int | None = None) -> None:
        """Go on in a new file, which is made before the lock is taken: a slow disk holds nobody up (keeper only).

        Where none can be made, a present one that still takes records stays.
        """
        made = self._file(_KEEPER_WAIT_S, size)
        with self._dictionary.lock:
            if self._refused(made):
                return
            made = self.filled(made)
            if not isinstance(made, NoJournal) or not journal.usable():
                self.change(journal, made)

    def change(self, before: Journal, after: Journal) -> None:
        """Let `after` be the present file (under the lock), or discard it where `before` is that no more."""
        # Between this test and the change no signal handler can run, and change it: there is no call.
        if self._present.journal is not before:
            after.discard()
            return
        self._present.journal = after
        before.stop()
        if not isinstance(before, NoJournal):
            self._old.append(before)

    def follow_old(self) -> None:
        """Go on in the next file where the present one has held a record for long, to be sealed (keeper only).

        The next one is small: a process that fills no file in that time needs none of the usual size.
        """
        journal = self._present.journal
        if isinstance(journal, NoJournal) or not journal.recorded():
            return
        now = time.monotonic()
        if self._held is None or self._held[0] != journal.ordinal:
            self._held = (journal.ordinal, now)
        elif now - self._held[1] >= self._limits.journal_roll_s:
            if self._next is not None:
                self.roll(journal)
            else:
                size = max(_QUIET_BYTES, 4 * SLOT * journal.used())
                self.replace(journal, min(size, self._limits.journal_bytes))

    def rename_policy(self) -> None:
        """Go on in a file whose header names the policy now in force; where none can be made the present one stays."""
        journal = self._present.journal
        if isinstance(journal, NoJournal):
            return
        self._drop_next()
        self.replace(journal)

    def _drop_next(self) -> None:
        with self._dictionary.lock:
            ready, self._next = self._next, None
            if ready is not None:
                ready.discard()

    def replace_lost(self) -> None:
        """Go on in a new file where the present one failed or was unlinked under us (keeper only)."""
        with self._dictionary.lock:
            if self._next is not None and self._next.vanished():
                self._drop_next()
        journal = self._present.journal
        if not isinstance(journal, NoJournal) and not journal.usable():
            self.replace(journal)

    # -- storing -------------------------------------------------------------------------------------------------------

    def put(self, slot: bytes) -> bool:
        """One finished slot into the present file. True when it is durable.

        Raises:
            JournalUnavailableError: there is no file for it.
        """
        while True:
            journal = self._present.journal
            placed = journal.put(slot)
            if placed is not None:
                return placed
            self.roll(journal)

    def write_entry(self, entry: Entry, number: int, payload: bytes) -> None:
        """All slots of an entry into one file, and into the one that is ready to follow (under the lock).

        Raises:
            JournalUnavailableError: there is no file for an entry that no later file repeats, or it fits into none.
        """
        slots = dictionary_slots(entry, number, payload)
        for _ in range(3):
            journal = self._present.journal
            if isinstance(journal, NoJournal) and not number:
                raise JournalUnavailableError(journal.reason)
            if all(journal.put_entry(slot) is not None for slot in slots):
                break
            self.roll(journal)
        else:
            raise JournalUnavailableError(GapReason.BUFFER_FULL)
        ready = self._next
        if number and ready is not None and any(ready.put_entry(slot) is None for slot in slots):
            self._next = None
            ready.discard()

    def write_losses(self) -> None:
        """Write what was lost as gap records; what cannot be written now waits (keeper and close only)."""
        waiting = self._losses.drain()
        try:
            for reason, loss in list(waiting.items()):
                self._write_loss(reason, loss)
                del waiting[reason]
        except JournalUnavailableError:
            pass
        finally:
            self._losses.settle(waiting)

    def _write_loss(self, reason: GapReason, loss: Loss) -> None:
        try:
            self.put(gap_slot(reason, loss))
        except JournalUnavailableError:
            with self._retiring:
                last = self._old[-1] if self._old else None
                if isinstance(last, MappedJournal) and not last.vanished():
                    last.put_gap(reason, loss)
                else:
                    self._gaps.add(reason, loss)

    def _gap_place(self) -> tuple[Path, JournalHeader, int]:
        header, ordinal = self._header(), next(self._ordinals)
        return new_path(self._spool, header.installation, ordinal), header, ordinal

    # -- letting go ----------------------------------------------------------------------------------------------------

    def retire(self, *, wait: bool = False) -> None:
        """Close the files that were gone on from and in which no store is under way (keeper and close only).

        While there is no file to go on in, the last full one stays open: its reserved slots take the losses.
        """
        with self._retiring:
            for journal in list(self._old):
                stranded = isinstance(self._present.journal, NoJournal)
                if not wait and (not journal.settled() or (stranded and journal is self._old[-1])):
                    continue
                if journal.vanished():
                    if stranded and not wait:
                        continue
                    self._rescue(journal)
                journal.close(2, journal.used(), self._losses.total)
                self._old.remove(journal)
            if not isinstance(self._present.journal, NoJournal):
                self._gaps.close(self._losses.total)

    def _rescue(self, journal: Journal) -> None:
        """Store again what a file held that was unlinked under us; count what cannot be."""
        if not isinstance(journal, MappedJournal):
            self._losses.count(GapReason.CORRUPT, journal.used())
            return
        for slot in journal.rescued():
            try:
                self.put(slot)
            except JournalUnavailableError:
                told = gap_of(slot)
                if told is None:
                    self._losses.count(GapReason.CORRUPT, int(slot[0] & ~FRESH == Kind.ATTEMPT))
                else:
                    self._losses.give_back(*told)

    def close(self) -> None:
        """Write what waits and close the files; what is lost from then on is lost through shutdown."""
        self._drop_next()
        self.unopened = False
        # Twice: a thread that goes on may fill the present file between the first look and the end.
        retire = functools.partial(self.retire, wait=True)
        for step in (self.replace_lost, self.write_losses, retire, self._close_last, retire):
            with Guard("close"):
                step()

    def _close_last(self) -> None:
        with self._dictionary.lock:
            last, self._present.journal = self._present.journal, NoJournal(GapReason.SHUTDOWN)
            self.closed = True
            last.stop()
        last.close(1, last.used(), self._losses.total)

    def write_late_losses(self) -> None:
        """Write what was lost while or after the files were closed into a file of its own, if there is anything."""
        self.write_losses()
        with self._retiring:
            self._gaps.close(self._losses.total)

    def forget(self) -> None:
        """In a forked child: drop the parent's files."""
        for inherited in (self._present.journal, self._next, *self._old, self._gaps, self.quota):
            if inherited is not None:
                with contextlib.suppress(Exception):  # each for itself: the others are the parent's too
                    inherited.forget()
