"""The journal of losses alone: one slot for each reason, added up in its place.

A process that never got a journal, or was closed, still has to say what it lost. This file takes 12 KiB and no mapping:
a spool or disk without room for a whole journal may well have that much left. It is made when there is something to
say. A slot never crosses a page, so that a kill leaves the sum of before or the sum of after.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from weighbridge.capture.journal import (
    JournalHeader,
    JournalUnavailableError,
    close_private,
    close_record,
    header_page,
    open_private,
    reason_of,
    unlinked,
)
from weighbridge.capture.layout import CLOSING, COMMIT, PAGE, RESERVE, SLOT
from weighbridge.capture.losses import Loss, gap_slot
from weighbridge.capture.quota import Quota
from weighbridge.schemas.enumerations import GapReason

_BYTES: Final = PAGE + RESERVE * SLOT
_WAIT_S: Final = 1.0  # for its turn in the spool


class GapJournal:
    """At most one file at a time. Only the keeper, and whoever closes the recorder, comes here.

    Args:
        place: the path, header and ordinal of a new file.
        quota: the bound of the spool it is made in.
    """

    def __init__(self, place: Callable[[], tuple[Path, JournalHeader, int]], quota: Quota) -> None:
        self._place = place
        self._quota = quota
        self._sums: dict[GapReason, Loss] = {}  # in order of their slots
        self._handle = -1

    def add(self, reason: GapReason, loss: Loss) -> None:
        """Add a loss to the slot of its reason.

        Raises:
            JournalUnavailableError: it cannot be written; a file says what it said before.
        """
        whole = Loss(loss.attempts, loss.tokens, loss.began_us, loss.ended_us)
        if reason in self._sums:
            whole.add(self._sums[reason])
        sums = {**self._sums, reason: whole}
        try:
            self._reach()
            self._store(list(sums).index(reason), reason, whole)
        except OSError as error:
            raise JournalUnavailableError(reason_of(error)) from error
        self._sums = sums

    def _reach(self) -> None:
        """Have a file that says what is known; one that was unlinked under us is written again."""
        if self._handle < 0 or unlinked(self._handle):
            self._begin()
            for number, (reason, loss) in enumerate(self._sums.items()):
                self._store(number, reason, loss)

    def _begin(self) -> None:
        self.forget()
        path, header, ordinal = self._place()
        with self._quota.room(_BYTES, _WAIT_S):
            self._handle = open_private(path)
            try:
                self._write(header_page(header, 0, PAGE, RESERVE, ordinal), 0)
            except OSError:
                self.forget()
                path.unlink(missing_ok=True)
                raise

    def _store(self, number: int, reason: GapReason, loss: Loss) -> None:
        at = PAGE + number * SLOT
        self._write(gap_slot(reason, loss)[:COMMIT] + at.to_bytes(8, "little"), at)

    def _write(self, data: bytes, at: int) -> None:
        done = 0
        while done < len(data):
            done += os.pwrite(self._handle, data[done:], at + done)

    def close(self, lost: int) -> None:
        """Say that this was all, sync, and let go of the file. The next loss begins another."""
        if self._handle < 0:
            return
        self._reach()
        taken, self._sums = len(self._sums), {}
        try:
            self._write(close_record(1, taken, taken, lost), CLOSING)
            os.fsync(self._handle)
        finally:
            handle, self._handle = self._handle, -1
            close_private(handle)

    def forget(self) -> None:
        """Drop the file without a word; in a forked child it is the parent's."""
        handle, self._handle = self._handle, -1
        if handle >= 0:
            os.close(handle)
