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
from weighbridge.capture.dictionary import Entry
from weighbridge.capture.layout import CHECKED, CLOSE, CLOSING, COMMIT, HEADER, MAGIC, PAGE, SLOT, SLOTS_PER_PAGE, Kind
from weighbridge.schemas.enumerations import Ended
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
        unchecked: slots accepted on their commit word alone.
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
    unchecked: int = 0
    taken: int = 0
    lost_by_close: int | None = None


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
    for page in range(-(-whole // SLOTS_PER_PAGE)):
        at = slots_at + page * PAGE
        data = raw[at : at + PAGE]
        verdict = _page_verdict(raw, checks_at, page, data)
        for index in range(len(data) // SLOT):
            slot = data[index * SLOT : (index + 1) * SLOT]
            if slot == _EMPTY:
                continue
            number = page * SLOTS_PER_PAGE + index
            last = number
            if verdict is False:
                contents.damaged += 1
            elif int.from_bytes(slot[COMMIT:], "little") != at + index * SLOT:
                contents.unfinished += 1
            else:
                contents.unchecked += verdict is None
                _take(contents, number, slot, parts)
    contents.damaged += len(parts)
    contents.taken = last + 1
    if state is not None and state != contents.taken:
        # The closing record counted other slots than are here: the file was cut or pages are missing.
        contents.damaged += max(0, state - contents.taken)
        contents.end = Ended.UNKNOWN
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
    if not checks_at:
        return None
    word = int.from_bytes(raw[checks_at + page * 8 : checks_at + page * 8 + 8], "little")
    if word == 0:
        return None
    return word == zlib.crc32(data) | CHECKED


def _take(contents: Contents, number: int, slot: bytes, parts: dict[tuple[int, int, int], dict[int, bytes]]) -> None:
    words = _WORDS.unpack_from(slot)
    kind = words[0] & 0xFF
    if kind != Kind.DICTIONARY:
        contents.slots.append((number, words))
        return
    entry, name, part, total, length, crc = words[0] >> 8, words[1], words[2], words[3], words[4], words[5]
    whole = parts.setdefault((entry, name, crc), {})
    whole[part] = slot[48:COMMIT]
    if len(whole) < total:
        return
    del parts[entry, name, crc]
    payload = b"".join(whole[index] for index in range(total))[:length]
    if zlib.crc32(payload) != crc or entry not in set(Entry):
        contents.damaged += 1
    elif entry == Entry.LEAVES:
        contents.leaves.append(json.loads(payload))
    elif entry == Entry.FOREIGN_ID:
        contents.foreign_ids.append(json.loads(payload))
    else:
        contents.dictionary[name] = (Entry(entry), json.loads(payload))


def doubles(words: tuple[int, ...], at: int) -> float:
    """The integer at position `at`, read as the double it was stored as."""
    return float(struct.unpack("<d", struct.pack("<q", words[at]))[0])


def journals(spool: Path) -> Iterator[Path]:
    """The journal files of a spool, oldest name first."""
    return iter(sorted(spool.glob("*.journal")))
