"""Reading a journal back: what was committed, what was damaged, and whether the end is known.

A slot is accepted when its commit word is its own offset and its page's checksum, where one was stored, fits. A page
without a checksum (the last one before a kill) is accepted on its commit words alone and counted as unchecked; a page
whose checksum does not fit is refused whole. Nothing is accepted silently: every refused or unfinished slot becomes a
gap record.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from weighbridge.capture import layout
from weighbridge.capture.dictionary import Entry, entry_check
from weighbridge.capture.layout import (
    CHECKED,
    CLOSE,
    CLOSING,
    COMMIT,
    FRESH,
    HEADER,
    MAGIC,
    PAGE,
    RECOUNT_SCRIPT_SHIFT,
    RESERVE,
    SCRIPTS,
    SLOT,
    SLOTS_PER_PAGE,
    Kind,
    Outcome,
    fresh_key,
)
from weighbridge.schemas.enumerations import Ended, GapReason
from weighbridge.schemas.errors import ContractError

_EMPTY: Final = bytes(SLOT)


@dataclass(slots=True)
class Contents:
    """What one journal file holds.

    Attributes:
        header: the JSON of its header page.
        wall_ns, monotonic_ns: clocks when it was made, which show a clock that jumped.
        end: complete (closed in order, or continued in the next file) or unknown.
        slots: (ordinal of the slot, its integers) of attempts, children, recounts, scopes, usage and gap records.
        dictionary: number -> (entry, content); one-off entries stand in `leaves` and `foreign_ids`.
        damaged: slots refused because a checksum did not fit.
        unfinished: slots that were taken and never committed.
        taken, room: slots handed out, and how many the file has to hand out.
        incomplete: records kept without their generation parameters, which this file does not hold.
        unproved: ordinals of the slots accepted on their commit word alone.
        lost_by_close: what the closing record says was lost over the life of the process.
    """

    path: Path
    header: dict[str, Any]
    pid: int
    ordinal: int
    wall_ns: int
    monotonic_ns: int
    end: Ended = Ended.UNKNOWN
    slots: list[tuple[int, tuple[int, ...]]] = field(default_factory=list)
    dictionary: dict[int, tuple[Entry, dict[str, Any]]] = field(default_factory=dict)
    leaves: list[dict[str, Any]] = field(default_factory=list)
    foreign_ids: list[dict[str, Any]] = field(default_factory=list)
    damaged: int = 0
    unfinished: int = 0
    unproved: list[int] = field(default_factory=list)
    incomplete: int = 0
    taken: int = 0
    room: int = 0
    lost_by_close: int | None = None

    @property
    def unchecked(self) -> int:
        """How many slots were accepted on their commit word alone."""
        return len(self.unproved)


_WORDS: Final = struct.Struct(f"<{layout.WORDS}q")


def read_journal(path: Path) -> Contents:
    """Read one journal file, sealed or abandoned.

    Raises:
        ContractError: the header page is damaged or not that of a journal; the file is left as it is.
    """
    raw = path.read_bytes()
    contents, checks_at, slots_at, slots = _header(path, raw)
    whole = min(slots, max(0, len(raw) - slots_at) // SLOT)
    state = _closing(raw, contents)
    parts: dict[tuple[int, int, int], dict[int, bytes]] = {}
    last = -1
    serial = slots - RESERVE if checks_at else slots
    for page in range(-(-whole // SLOTS_PER_PAGE)):
        at = slots_at + page * PAGE
        data = raw[at : at + PAGE]
        verdict = _page_verdict(raw, checks_at, page, data)
        for index in range(len(data) // SLOT):
            slot = data[index * SLOT : (index + 1) * SLOT]
            number = page * SLOTS_PER_PAGE + index
            if slot == _EMPTY:
                continue
            if number < serial:
                # Slots are handed out in order: an empty one before this one was taken and never stored.
                contents.unfinished += number - last - 1
                last = number
            if verdict is False:
                contents.damaged += 1
            elif int.from_bytes(slot[COMMIT:], "little") != at + index * SLOT:
                contents.unfinished += 1
            else:
                if verdict is None:
                    contents.unproved.append(number)
                _take(contents, number, slot, parts)
    for page in range(-(-whole // SLOTS_PER_PAGE), slots // SLOTS_PER_PAGE):
        # The file was cut: what a page held that is not there is known by its checksum alone.
        contents.damaged += SLOTS_PER_PAGE * (_check_word(raw, checks_at, page) != 0)
    contents.taken, contents.room = last + 1, serial
    if state is not None and state != contents.taken:
        # The closing record counted other slots than are here: the file was cut or pages are missing.
        contents.damaged += max(0, state - contents.taken)
        contents.end = Ended.UNKNOWN
    contents.slots = [kept for slot in contents.slots if (kept := _readable(contents, slot)) is not None]
    return contents


def _header(path: Path, raw: bytes) -> tuple[Contents, int, int, int]:
    if len(raw) < PAGE or raw[:8] != MAGIC:
        raise ContractError(f"{path} is no journal of this product; move it out of the spool")
    _, version, slot, checks_at, slots_at, slots, wall, mono, pid, ordinal = HEADER.unpack_from(raw)
    at = HEADER.size
    length = int.from_bytes(raw[at : at + 4], "little")
    text = raw[at + 8 : at + 8 + length]
    if zlib.crc32(raw[: HEADER.size] + text) != int.from_bytes(raw[at + 4 : at + 8], "little"):
        raise ContractError(
            f"{path}: the header page is damaged; nothing of it can be trusted, keep the file for review"
        )
    if version != layout.LAYOUT_VERSION or slot != SLOT:
        raise ContractError(
            f"{path}: journal layout {version}; this version reads {layout.LAYOUT_VERSION}. Upgrade it."
        )
    contents = Contents(path, json.loads(text), pid, ordinal, wall, mono)
    return contents, checks_at, slots_at, slots


def _closing(raw: bytes, contents: Contents) -> int | None:
    """The number of slots the closing record states, if there is a sound one."""
    record = raw[CLOSING : CLOSING + CLOSE.size]
    state, taken, _, lost, crc = CLOSE.unpack(record)
    if state not in (1, 2) or zlib.crc32(record[:-8]) != crc:
        return None
    contents.end = Ended.COMPLETE
    contents.lost_by_close = lost
    return int(taken)


def _page_verdict(raw: bytes, checks_at: int, page: int, data: bytes) -> bool | None:
    """True: checked and sound. False: damaged. None: no checksum was stored."""
    word = _check_word(raw, checks_at, page)
    return None if word == 0 else word == zlib.crc32(data) | CHECKED


def _check_word(raw: bytes, checks_at: int, page: int) -> int:
    """The checksum stored for a page, 0 where there is none."""
    return int.from_bytes(raw[checks_at + page * 8 : checks_at + page * 8 + 8], "little") if checks_at else 0


def _take(contents: Contents, number: int, slot: bytes, parts: dict[tuple[int, int, int], dict[int, bytes]]) -> None:
    words = _WORDS.unpack_from(slot)
    kind = words[0] & 0xFF
    if kind == Kind.VOID:
        return
    if kind == Kind.ATTEMPT | FRESH and isinstance(contents.header.get("tail"), int):
        hi, lo = fresh_key(words[1], words[2], contents.header["tail"])
        if not -(1 << 63) <= hi < 1 << 63:
            contents.damaged += 1
            return
        words = (words[0] & ~FRESH, hi, lo, *words[3:5], words[1] // 1000, *words[6:])
        kind = Kind.ATTEMPT
    if kind != Kind.DICTIONARY:
        contents.slots.append((number, words))
        return
    entry, name, part, total, length, crc = words[0] >> 8, words[1], words[2], words[3], words[4], words[5]
    whole = parts.setdefault((entry, name, crc), {})
    whole[part] = slot[48:COMMIT]
    if len(whole) < total:
        return  # the rest follows, or the file was full: the entry then stands whole in the next one
    del parts[entry, name, crc]
    payload = b"".join(whole.get(index, b"") for index in range(len(whole)))[: max(0, length)]
    if entry not in set(Entry) or entry_check(entry, name, total, payload) != crc:
        contents.damaged += 1
    elif entry == Entry.LEAVES:
        contents.leaves.append(json.loads(payload))
    elif entry == Entry.FOREIGN_ID:
        contents.foreign_ids.append(json.loads(payload))
    else:
        contents.dictionary[name] = (Entry(entry), json.loads(payload))


_OF_A_PLAN: Final = (Kind.ATTEMPT, Kind.USAGE, Kind.CHILD)
_TIMES_AT: Final = {Kind.GAP: (4, 5), Kind.RECOUNT: (3,), Kind.COUNTER: (2,)}
_LAST_US: Final = 253_402_300_799_999_999  # the year 9999
_FIRST_US: Final = -62_135_596_800_000_000


def _readable(contents: Contents, numbered: tuple[int, tuple[int, ...]]) -> tuple[int, tuple[int, ...]] | None:
    """The slot, if every number in it that stands for something does; None, and counted as damaged, if not.

    One record that cannot be read must not stop the others of its file from being sealed.
    """
    number, words = numbered
    kind = words[0] & 0xFF
    sound = kind in set(Kind) and all(_FIRST_US <= words[at] <= _LAST_US for at in _TIMES_AT.get(Kind(kind), (5,)))
    if kind == Kind.RECOUNT:
        sound = sound and words[8] >> RECOUNT_SCRIPT_SHIFT in range(-1, len(SCRIPTS))
    if sound and kind in _OF_A_PLAN:
        plan = contents.dictionary.get(words[0] >> 8 & 0xFFFFFF)
        sound = plan is not None and plan[0] is Entry.PLAN and _sound_outcome(words[7])
    if sound and kind in (*_OF_A_PLAN, Kind.SCOPE):
        context = contents.dictionary.get(words[0] >> 32)
        sound = context is not None and context[0] is Entry.CONTEXT
    if sound and kind == Kind.COUNTER:
        named = contents.dictionary.get(words[0] >> 32)
        sound = named is not None and named[0] is Entry.COUNTERS and words[3] <= _LAST_US
    if sound and kind == Kind.GAP:
        sound = 0 <= words[1] < len(GapReason)
    if not sound:
        contents.damaged += 1
        return None
    if kind in _OF_A_PLAN and words[6] > 0 and words[6] not in contents.dictionary:
        contents.incomplete += 1
        words = (*words[:6], -1, *words[7:])
    return number, words


def _sound_outcome(word: int) -> bool:
    try:
        Outcome.of(word)
    except IndexError:
        return False
    return True


def doubles(words: tuple[int, ...], at: int) -> float:
    """The integer at position `at`, read as the double it was stored as."""
    return float(struct.unpack("<d", struct.pack("<q", words[at]))[0])


def journals(spool: Path) -> Iterator[Path]:
    """The journal files of a spool, oldest name first."""
    return iter(sorted(spool.glob("*.journal")))
