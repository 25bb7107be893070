"""The dictionary of a process: words are stored once and records carry numbers.

Every journal file is readable alone, so each file gets the entries it needs before the first record that uses them.
A new file is given the entries that a living binding or an open scope uses or that were asked for lately; the others
are forgotten, so that neither memory nor the head of a file grows with all that was ever seen.
"""

from __future__ import annotations

import json
import struct
import threading
import weakref
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Final, Protocol

from weighbridge.capture.layout import COMMIT, SLOT, Kind

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
    COUNTERS = 6  # of which engine counters are, and their series


Stored = tuple[Entry, int, bytes]


class DictionaryFullError(Exception):
    """More distinct entries in use than one process may have; the record that needs one is counted as lost."""


class User(Protocol):
    """Whoever writes records that refer to entries: a binding, a scope."""

    def entries(self) -> Iterable[int]:
        """Numbers of the entries it uses, or may use again."""
        ...


class Dictionary:
    """Numbers for entries.

    Attributes:
        lock: one for the dictionary and the files: with two, a roll and a new entry would wait for each other.

    Args:
        write: puts an entry into the journal files that are open; called under the lock.
    """

    def __init__(self, write: Callable[[Entry, int, bytes], None]) -> None:
        self.lock = threading.RLock()
        self._write = write
        self._users: weakref.WeakSet[User] = weakref.WeakSet()
        self._numbers: dict[tuple[Entry, bytes], int] = {}
        self._entries: dict[int, tuple[Entry, bytes]] = {}  # by number, the one asked for last at the end
        self._next = {True: _FIRST_PLAN, False: _FIRST_OTHER}

    def hold(self, user: User) -> None:
        """Keep what `user` uses for as long as it lives.

        Under the lock together with the numbers it was given: else a new file may leave them out in between.
        """
        with self.lock:
            self._users.add(user)

    def in_use(self) -> set[int]:
        """Numbers of the entries that somebody alive uses."""
        with self.lock:
            return {number for user in list(self._users) for number in user.entries()}

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
            recent: how many entries of a kind that nobody alive uses are kept, those asked for last.
        """
        with self.lock:
            living = self.in_use()
            for kind in Entry:
                others = [n for n, (entry, _) in self._entries.items() if entry is kind and n not in living]
                for number in others[: max(0, len(others) - recent)]:
                    self._numbers.pop(self._entries.pop(number), None)
            return [(entry, number, payload) for number, (entry, payload) in self._entries.items()]

    def __len__(self) -> int:
        return len(self._entries)


def _payload(content: Mapping[str, object]) -> bytes:
    return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def entry_check(kind: int, number: int, parts: int, payload: bytes) -> int:
    """CRC-32 of a dictionary entry, its number included: a number that changed would give a record other words."""
    return zlib.crc32(payload, zlib.crc32(struct.pack("<3q", kind, number, parts)))


def dictionary_slots(kind: int, number: int, payload: bytes) -> Sequence[bytes]:
    """A dictionary entry cut into slots: six integers (tag, number, part, parts, length, crc), then its bytes."""
    room = COMMIT - 48
    parts = [payload[at : at + room] for at in range(0, len(payload), room)] or [b""]
    crc = entry_check(kind, number, len(parts), payload)
    out = []
    for part, chunk in enumerate(parts):
        slot = bytearray(SLOT)
        for index, word in enumerate((Kind.DICTIONARY | kind << 8, number, part, len(parts), len(payload), crc)):
            slot[index * 8 : index * 8 + 8] = word.to_bytes(8, "little", signed=True)
        slot[48 : 48 + len(chunk)] = chunk
        out.append(bytes(slot))
    return out
