"""What was lost, by reason: counted at once in memory, written as gap records by the keeper."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

from weighbridge.schemas.enumerations import GapReason


@dataclass(slots=True)
class Loss:
    """Attempts (and tokens, where known) lost for one reason since the last gap record."""

    attempts: int = 0
    tokens: int = 0
    began_us: int = 0
    ended_us: int = 0


class Losses:
    """Exact counters. The lock is held for a few additions; the request path comes here only after a loss."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a signal handler may lose an attempt while a loss is being counted
        self._open: dict[GapReason, Loss] = {}
        self.total = 0

    def count(self, reason: GapReason, attempts: int = 1, tokens: int = 0) -> None:
        """Count a loss."""
        now = time.time_ns() // 1000
        with self._lock:
            loss = self._open.setdefault(reason, Loss(began_us=now))
            loss.attempts += attempts
            loss.tokens += tokens
            loss.began_us = min(loss.began_us, now)  # the clock may have been set back
            loss.ended_us = max(loss.ended_us, now)
            self.total += attempts

    def drain(self) -> dict[GapReason, Loss]:
        """Take what has been counted so far; the caller writes it or gives it back."""
        with self._lock:
            taken, self._open = self._open, {}
        return taken

    def give_back(self, reason: GapReason, loss: Loss) -> None:
        """Put back a loss that could not be written yet."""
        with self._lock:
            kept = self._open.get(reason)
            if kept is None:
                self._open[reason] = loss
            else:
                kept.attempts += loss.attempts
                kept.tokens += loss.tokens
                kept.began_us = min(kept.began_us, loss.began_us)
                kept.ended_us = max(kept.ended_us, loss.ended_us)

    def snapshot(self) -> dict[str, int]:
        """Attempts lost and not yet written, by reason."""
        with self._lock:
            return {str(reason): loss.attempts for reason, loss in sorted(self._open.items())}
