"""Records that are written off the fast path: what a finish could not store at once, children, further usage, ids.

Nothing here raises into the host: what cannot be kept is counted by reason.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Sequence
from typing import Final

from weighbridge.capture.binding import Attempt, Binding
from weighbridge.capture.dictionary import Dictionary, DictionaryFullError, Entry
from weighbridge.capture.guard import Guard, raises, report
from weighbridge.capture.journal import JournalUnavailableError
from weighbridge.capture.journals import Journals
from weighbridge.capture.layout import Kind
from weighbridge.capture.losses import Losses
from weighbridge.capture.mapped_journal import MappedJournal
from weighbridge.capture.present import Journal, Present
from weighbridge.capture.rendering import Renderer, head_of
from weighbridge.schemas.enumerations import ChildKind, ForeignIdKind, GapReason
from weighbridge.schemas.identity import IDENTIFIER

_KINDS: Final = {kind: code for code, kind in enumerate(ChildKind)}


class Records(Present):
    """The writing side of a recorder.

    Attributes:
        losses: what was lost and is not yet written.
        written_slow, not_durable, repeated: finishes off the fast path, those whose record still waited in a buffer,
            and second ones of one attempt.
    """

    pid: int
    losses: Losses
    journals: Journals
    dictionary: Dictionary
    renderer: Renderer
    follows: bool = False

    def __init__(self) -> None:
        self.written_slow = 0
        self.not_durable = 0
        self.repeated = 0
        self._tally = threading.RLock()  # as all locks here: a signal handler may finish attempts of its own

    def open(self) -> None:
        """Open the first journal."""
        raise NotImplementedError

    def _put(self, slot: bytes) -> bool:
        """One finished slot into the present file. True when it is durable; raises JournalUnavailableError if lost."""
        if self.journals.unopened:
            # A forked child opens its files at its first record: most children of a server never make one.
            with self.dictionary.lock:
                if self.journals.unopened:
                    self.open()
        return self.journals.put(slot)

    def put_slot(self, slot: bytes) -> bool:
        """Store a rendered slot that is no attempt; a loss is counted."""
        try:
            return self._put(slot)
        except JournalUnavailableError as error:
            self.losses.count(error.reason, attempts=0)
            return False

    def write_slow(
        self,
        attempt: Attempt,
        outcome: int,
        counts: Sequence[int],
        usage: object,
        ids_expected: int,
        journal: Journal | None,
        offset: int,
    ) -> bool:
        """Write what the fast path could not: an unknown shape, a null, a full file, the fallback. Never raises."""
        unused: MappedJournal | None = None
        try:
            if os.getpid() != self.pid:
                return False  # forked without a call of the fork hooks: this process has no journal
            unused = journal if isinstance(journal, MappedJournal) and journal.holds(offset) else None
            if not attempt.binding.context:
                raise DictionaryFullError
            head = head_of(attempt, outcome, ids_expected)
            slot = self.renderer.slot(attempt.binding, head, counts, usage, hot=True)
            # The slot that was taken serves only while its file is the present one: an entry that was written since
            # a roll stands in the new file.
            if unused is not None and unused is self.journal:
                unused.store(offset, slot)
                unused, durable = None, True
            else:
                durable = self._put(slot)
            with self._tally:
                self.written_slow += 1
                self.not_durable += not durable
        except Exception as error:  # noqa: BLE001 - nothing may reach the host
            return self.swallow(error, GapReason.SERIALISE)
        else:
            return durable
        finally:
            # Not so in a child that was forked while we were here: there it is no slot of ours any more.
            if unused is not None and unused.holds(offset):
                unused.void(offset)

    def put_usage(self, binding: Binding, attempt: Attempt, outcome: int, usage: object, part: int) -> bool:
        """Store a further part of an answer's usage, after the one that stands in the attempt itself. Never raises.

        Args:
            binding: one without counts, whose root says where this part's usage stood in its event.
            outcome: as in `Attempt.finish`; its part kind is that of this part.
            part: 1 for the first further part, then 2, 3, ...
        """
        try:
            if os.getpid() != self.pid or self.follows:
                return self.follows
            word = outcome | attempt.level_bits | attempt.mark_bits
            head = [0, attempt.hi, attempt.lo, 0, 0, attempt.arrived_us, -1, word, part, -1]
            return self._put_beside(Kind.USAGE, self.renderer.slot(binding, head, (), usage, part))
        except Exception as error:  # noqa: BLE001 - nothing may reach the host
            return self.swallow(error, GapReason.SERIALISE, attempts=0)

    def finish_child(
        self, attempt: Attempt, child: int, kind: ChildKind, outcome: int, counts: Sequence[int] = (), parent: int = 0
    ) -> bool:
        """Write a child of `attempt` (a choice, beam, iteration or prompt); call it before the attempt is finished.

        Args:
            child: its number, from 1.
            outcome: see `layout.outcome_word`.
            counts: the integers the attempt's binding names, in its order, -1 where unknown.
            parent: the child whose prompt it shares, 0 for none.

        Returns:
            True when the record survives a SIGKILL from here on. Never raises.
        """
        try:
            if os.getpid() != self.pid or self.follows:
                return self.follows
            head = [
                0, attempt.hi, attempt.lo, attempt.request_hi, attempt.request_lo, attempt.arrived_us,
                attempt.parameters, outcome | attempt.level_bits, child | _KINDS[kind] << 16 | parent << 32, -1,
            ]  # fmt: skip
            return self._put_beside(Kind.CHILD, self.renderer.slot(attempt.binding, head, counts, None))
        except Exception as error:  # noqa: BLE001 - nothing may reach the host
            return self.swallow(error, GapReason.SERIALISE, attempts=0)

    def _put_beside(self, kind: Kind, slot: bytes) -> bool:
        """Store a record that stands beside its attempt."""
        return self._put(bytes((kind,)) + slot[1:])

    def finish_many(self, finished: Iterable[tuple[Attempt, int, Sequence[int], object]]) -> int:
        """Finish the attempts that ended in one engine step; how many are durable."""
        durable = 0
        try:
            for attempt, outcome, counts, usage in finished:
                durable += attempt.finish(outcome, counts, usage)
        except Exception as error:  # noqa: BLE001 - what was handed over is no list of finishes
            self.swallow(error)
        return durable

    def put_foreign_id(self, attempt: Attempt, kind: ForeignIdKind, value: str) -> None:
        """Store an identifier another system gave to this attempt. What does not look like one is dropped."""
        with Guard("foreign_id"):
            if os.getpid() == self.pid and not self.follows and IDENTIFIER.fullmatch(value):
                content = {
                    "attempt": attempt.key.to_hex(),
                    "kind": str(kind),
                    "value": value,
                    "us": attempt.arrived_us,
                }
                try:
                    self.dictionary.once(Entry.FOREIGN_ID, content)
                except JournalUnavailableError as error:
                    self.losses.count(error.reason, attempts=0)

    def repeat(self) -> bool:
        """Count a second finish of an attempt; its first one stands. Always False."""
        with self._tally:
            self.repeated += 1
        return False

    def swallow(self, error: Exception, reason: GapReason = GapReason.CALLBACK_ERROR, attempts: int = 1) -> bool:
        """Count what was lost through an error, most often one of our own. Always False."""
        if isinstance(error, JournalUnavailableError):
            self.losses.count(error.reason, attempts)
            return False
        if isinstance(error, DictionaryFullError):
            self.losses.count(GapReason.BUFFER_FULL, attempts)
            return False
        self.losses.count(reason, attempts)
        report(error, "finish")
        if raises():
            raise error
        return False
