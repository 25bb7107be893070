"""The dictionary of a process: words are stored once and records carry numbers.

Every journal file is readable alone, so each file gets the entries it needs before the first record that uses them.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Final

MOST: Final = 1 << 20


class Entry(IntEnum):
    """What a dictionary entry describes."""

    CONTEXT = 1
    PARAMETERS = 2
    PLAN = 3
    LEAVES = 4  # leaves of one report that no plan can store
    FOREIGN_ID = 5  # an identifier another system gave to one attempt


class DictionaryFullError(Exception):
    """More distinct entries than one process may have; the record that needs one is counted as lost."""


class Dictionary:
    """Numbers for entries. `write` puts an entry into the journal files that are open; it is called under the lock."""

    def __init__(self, write: Callable[[Entry, int, bytes], None]) -> None:
        self.lock = threading.RLock()
        self._write = write
        self._numbers: dict[tuple[Entry, bytes], int] = {}
        self._entries: list[tuple[Entry, int, bytes]] = []

    def number(self, entry: Entry, content: Mapping[str, object]) -> int:
        """The number of an entry; written first if it is new.

        Raises:
            DictionaryFullError: there are too many.
        """
        payload = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()
        with self.lock:
            known = self._numbers.get((entry, payload))
            if known is not None:
                return known
            if len(self._entries) >= MOST:
                raise DictionaryFullError
            number = len(self._entries) + 1
            self._write(entry, number, payload)
            self._numbers[entry, payload] = number
            self._entries.append((entry, number, payload))
            return number

    def derive(self, number: int, more: Mapping[str, object]) -> int:
        """The number of entry `number` with `more` added."""
        with self.lock:
            entry, _, payload = self._entries[number - 1]
            return self.number(entry, {**json.loads(payload), **more})

    def once(self, entry: Entry, content: Mapping[str, object]) -> None:
        """Write an entry that only one record needs; later files do not repeat it."""
        payload = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()
        with self.lock:
            self._write(entry, 0, payload)

    def renew_lock(self) -> None:
        """In a forked child: the lock may be held by a thread that does not exist there."""
        self.lock = threading.RLock()

    def entries(self) -> list[tuple[Entry, int, bytes]]:
        """All entries so far, for the head of the next file."""
        with self.lock:
            return list(self._entries)
