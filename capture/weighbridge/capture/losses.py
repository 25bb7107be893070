"""What was lost, by reason: counted at once in memory, written as gap records by the keeper."""

from __future__ import annotations

import struct
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from weighbridge.capture.layout import RESERVE, SLOT, Kind
from weighbridge.schemas.enumerations import GapReason

REASONS: Final = tuple(GapReason)
assert len(REASONS) <= RESERVE
_GAP: Final = struct.Struct("<6q")


@dataclass(slots=True)
class Loss:
    """Attempts (and tokens, where known) lost for one reason since the last gap record."""

    attempts: int = 0
    tokens: int = 0
    began_us: int = 0
    ended_us: int = 0

    def add(self, other: Loss) -> None:
        """Take another loss for the same reason into this one."""
        self.attempts += other.attempts
        self.tokens += other.tokens
        self.began_us = min(self.began_us, other.began_us)  # the clock may have been set back
        self.ended_us = max(self.ended_us, other.ended_us)


def gap_slot(reason: GapReason, loss: Loss) -> bytes:
    """The gap record of a loss; its commit word is still missing."""
    words = (Kind.GAP, REASONS.index(reason), loss.attempts, loss.tokens, loss.began_us, loss.ended_us)
    return _GAP.pack(*words) + bytes(SLOT - _GAP.size)


def gap_of(slot: bytes | bytearray) -> tuple[GapReason, Loss] | None:
    """What a slot says was lost; None where it is no gap record."""
    kind, index, attempts, tokens, began_us, ended_us = _GAP.unpack_from(slot)
    return (REASONS[index], Loss(attempts, tokens, began_us, ended_us)) if kind == Kind.GAP else None


class Losses:
    """Exact counters. The lock is held for a few additions; the request path comes here only after a loss.

    Attributes:
        total: attempts lost since the start.
        counted: called after each loss, where nobody comes by to write them; None while the keeper does.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a signal handler may lose an attempt while a loss is being counted
        self._open: dict[GapReason, Loss] = {}
        self._taken: dict[GapReason, Loss] = {}
        self.total = 0
        self.counted: Callable[[], object] | None = None

    def count(self, reason: GapReason, attempts: int = 1, tokens: int = 0) -> None:
        """Count a loss."""
        now = time.time_ns() // 1000
        self.give_back(reason, Loss(attempts, tokens, now, now))
        with self._lock:
            self.total += attempts
        if self.counted is not None:
            self.counted()

    def drain(self) -> dict[GapReason, Loss]:
        """Take what has been counted so far; the caller writes it and then calls `settle`."""
        with self._lock:
            self._taken, self._open = self._open, {}
            return dict(self._taken)

    def settle(self, unwritten: Mapping[GapReason, Loss]) -> None:
        """What was taken is written, but for this, which is put back."""
        with self._lock:
            self._taken = {}
            for reason, loss in unwritten.items():
                self.give_back(reason, loss)

    def give_back(self, reason: GapReason, loss: Loss) -> None:
        """Put back a loss that could not be written yet."""
        with self._lock:
            kept = self._open.get(reason)
            if kept is None:
                self._open[reason] = loss
            else:
                kept.add(loss)

    def snapshot(self) -> dict[str, int]:
        """Attempts lost and not yet written, by reason: what is being written counts until it is."""
        with self._lock:
            sums = {reason: loss.attempts for reason, loss in self._taken.items()}
            for reason, loss in self._open.items():
                sums[reason] = sums.get(reason, 0) + loss.attempts
        return {str(reason): attempts for reason, attempts in sorted(sums.items())}
