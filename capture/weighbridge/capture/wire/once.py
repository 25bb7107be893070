"""Keys that others name: each is taken once. Who sends one a second time has made another attempt, not a revision."""

from __future__ import annotations

from typing import Final

from weighbridge.schemas.identity import AttemptKey

_KEPT: Final = 4096


class Once:
    """The keys that were taken of late: at least the last 4,096 of them, at most twice as many."""

    def __init__(self) -> None:
        self._now: set[AttemptKey] = set()
        self._before: set[AttemptKey] = set()

    def take(self, key: AttemptKey) -> AttemptKey | None:
        """The key, None where it was taken before."""
        if key in self._now or key in self._before:
            return None
        if len(self._now) >= _KEPT:
            self._before, self._now = self._now, set()
        self._now.add(key)
        return key
