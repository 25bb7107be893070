"""The dictionary of a process: words are stored once and records carry numbers.

Every journal file is readable alone, so each file gets the entries it needs before the first record that uses them.
A new file is given the entries that a living binding uses or that were asked for lately; the others are forgotten, so
that neither memory nor the head of a file grows with all that was ever seen.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from enum import IntEnum
from typing import Final

MOST: Final = 1 << 14
# Plans have 24 bits in a slot, all else 31; two ranges, so that no number means two things.
_FIRST_PLAN: Final = 1
_FIRST_OTHER: Final = 1 << 24
_LAST_PLAN: Final = _FIRST_OTHER - 1
_LAST_OTHER: Final = (1 << 31) - 1


class Entry(IntEnum):
    """What a dictionary entry describes."""

    CONTEXT = 1
    PARAMETERS = 2
    PLAN = 3
    LEAVES = 4  # leaves of one report that no plan can store
    FOREIGN_ID = 5  # an identifier another system gave to one attempt


Stored = tuple[Entry, int, bytes]


class DictionaryFullError(Exception):
    """More distinct entries in use than one process may have; the record that needs one is counted as lost."""


class Dictionary:
    """Numbers for entries.

    Args:
        write: puts an entry into the journal files that are open; called under the lock.
        living: numbers of entries that a living binding uses.
        lock: the recorder's own; one lock for both, so that they cannot wait for each other.
    """

    def __init__(
        self, write: Callable[[Entry, int, bytes], None], living: Callable[[], Collection[int]],
        lock: AbstractContextManager[object],
    ) -> None:  # fmt: skip
        self.lock = lock
        self._write = write
        self._living = living
        self._numbers: dict[tuple[Entry, bytes], int] = {}
        self._entries: dict[int, tuple[Entry, bytes]] = {}  # by number, the one asked for last at the end
        self._next = {True: _FIRST_PLAN, False: _FIRST_OTHER}

    def number(self, entry: Entry, content: Mapping[str, object]) -> int:
        """The number of an entry; written first if it is new.

        Raises:
            DictionaryFullError: there are too many in use.
        """
        payload = _payload(content)
        with self.lock:
            known = self._numbers.get((entry, payload))
            if known is not None:
                self._entries[known] = self._entries.pop(known)
                return known
            if len(self._entries) >= MOST:
                self.keep(MOST // 2)
            number = self._next[entry is Entry.PLAN]
            if len(self._entries) >= MOST or number > (_LAST_PLAN if entry is Entry.PLAN else _LAST_OTHER):
                raise DictionaryFullError
            self._next[entry is Entry.PLAN] = number + 1
            self._write(entry, number, payload)
            # In this order a fork in between costs a second number, never an entry that is missing.
            self._entries[number] = (entry, payload)
            self._numbers[entry, payload] = number
            return number

    def derive(self, number: int, more: Mapping[str, object]) -> int:
        """The number of entry `number` with `more` added."""
        with self.lock:
            entry, payload = self._entries[number]
            return self.number(entry, {**json.loads(payload), **more})

    def once(self, entry: Entry, content: Mapping[str, object]) -> None:
        """Write an entry that only one record needs; later files do not repeat it."""
        payload = _payload(content)
        with self.lock:
            self._write(entry, 0, payload)

    def keep(self, recent: int) -> list[Stored]:
        """What the head of the next file must hold; all else is forgotten.

        Args:
            recent: how many entries of a kind that no living binding uses are kept, those asked for last.
        """
        with self.lock:
            living = self._living()
            for kind in Entry:
                others = [n for n, (entry, _) in self._entries.items() if entry is kind and n not in living]
                for number in others[: max(0, len(others) - recent)]:
                    self._numbers.pop(self._entries.pop(number), None)
            return [(entry, number, payload) for number, (entry, payload) in self._entries.items()]

    def __len__(self) -> int:
        return len(self._entries)


def _payload(content: Mapping[str, object]) -> bytes:
    return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()
