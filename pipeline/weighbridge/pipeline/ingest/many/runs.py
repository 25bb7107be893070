"""The numbers in a block of lines, as arrays, and which lines are equal but for them.

Lines that are equal once each run of digits is one zero differ in nothing but these digits. They have the same tokens
in the same order, so what one of them says all of them say, with other numbers. Runs that stand as the digits of a
name do, and not as a number does, are left as they are: by them lines differ in more than numbers.

    {"prompt_tokens": 9, "model": "gpt-5"}      {"prompt_tokens": 0, "model": "gpt-5"}      run 9
    {"prompt_tokens": 120, "model": "gpt-5"}    {"prompt_tokens": 0, "model": "gpt-5"}      run 120
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weighbridge.pipeline.ingest.many.places import Codes, Ints, Raw, sparse, table, without

# A whole number of as many digits is read here; a longer one is looked at by itself.
LONGEST = 16
# What may be odd about a run: it begins with a zero and goes on; it has more digits than a count that is surely no
# larger than is relied on, than a part of a fraction, than its exponent. Each is a bit.
LEADS, NO_COUNT, NO_FRACTION, NO_EXPONENT = 1, 2, 4, 8
_COUNT, _FRACTION, _EXPONENT = 15, 30, 2
_WORD = 8
_MOST = 2**15 - 1
_NONE = np.zeros(0, np.int64)
_RUN = re.compile(rb"[0-9]+")
_NEWLINE, _ZERO, _MINUS, _POINT = b"\n0-."
_DIGITS = 10
# A number follows one of those, or is followed by one of these; after a minus it may have a fraction.
_BEFORE, _AFTER = table(b" :,["), table(b",}] \neE")


def runs_of(line: bytes) -> list[re.Match[bytes]]:
    """The runs of a line that stand where a number may."""
    line += b"\n"
    return [run for run in _RUN.finditer(line) if _may_be_number(line[run.start() - 1], line[run.end()])]


def _may_be_number(before: int, after: int) -> bool:
    return bool(_BEFORE[before] or _AFTER[after]) or (before == _MINUS and after == _POINT)


class _Chunk(NamedTuple):
    """What `Block` says, of one chunk."""

    raw: Raw
    begins: Ints
    bare: list[bytes]
    of_line: Ints
    first: Ints
    values: Ints
    lengths: Ints
    odd: Codes


@dataclass(frozen=True, slots=True)
class Block:
    """Whole lines, and the runs of digits in them that may be numbers.

    Attributes:
        bare: the distinct lines with a zero for each run, with their ends.
        of_line: which of `bare` each line is.
        first: of each line, its first run.
        values: the number that each run writes, where it has at most `LONGEST` digits.
        lengths: how many digits each run has; of very long ones, many.
        odd: what is odd about each run, as bits: `LEADS`, `NO_COUNT`, `NO_FRACTION`, `NO_EXPONENT`.
    """

    bare: list[bytes]
    of_line: Ints
    first: Ints
    values: Ints
    lengths: Ints
    odd: Codes
    _chunks: Sequence[_Chunk]
    _lines: Sequence[int]

    def line(self, number: int) -> bytes:
        """One line with its end."""
        at = bisect_right(self._lines, number) - 1
        chunk, within = self._chunks[at], number - self._lines[at]
        return bytes(chunk.raw[chunk.begins[within] : chunk.begins[within + 1]])

    def longer(self, most: int) -> Ints:
        """The lines with more bytes, their end left out."""
        sizes = [_NONE, *(np.diff(chunk.begins) for chunk in self._chunks)]
        return np.flatnonzero(np.concatenate(sizes) > most + 1)


def block_of(chunks: Sequence[Raw]) -> Block:
    """The runs of a block, of which each chunk is whole lines, each with its end."""
    ids: dict[bytes, int] = {}
    found: list[_Chunk] = []
    of_line: list[Ints] = [_NONE]
    firsts: list[Ints] = [_NONE]
    lines = [0]
    runs = 0
    for raw in chunks:
        one = _chunk(raw)
        found.append(one)
        of_line.append(np.array([ids.setdefault(bare, len(ids)) for bare in one.bare], np.int64)[one.of_line])
        firsts.append(one.first + runs)
        lines.append(lines[-1] + len(one.of_line))
        runs += len(one.values)
    return Block(
        list(ids),
        np.concatenate(of_line),
        np.concatenate(firsts),
        np.concatenate([_NONE, *(one.values for one in found)]),
        np.concatenate([_NONE, *(one.lengths for one in found)]),
        np.concatenate([np.zeros(0, np.uint8), *(one.odd for one in found)]),
        found,
        lines,
    )


def _chunk(raw: Raw) -> _Chunk:
    codes = np.frombuffer(raw, np.uint8)
    begins = np.concatenate([np.zeros(1, np.int64), sparse(codes == _NEWLINE) + 1])
    start, end = _runs(codes)
    length = end - start
    first = np.searchsorted(start, begins)
    # Of each run the first digit stays, as a zero.
    bare = without(raw, start + 1, end)
    gone = np.concatenate([np.zeros(1, np.int64), np.cumsum(length - 1)])
    if start.size:
        bare = bare if isinstance(bare, memoryview) and not bare.readonly else memoryview(bytearray(bare))
        np.frombuffer(bare, np.uint8)[start - gone[:-1]] = _ZERO
    lines = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(begins) - 1, [None, pa.py_buffer(begins - gone[first]), pa.py_buffer(bare)]
    ).dictionary_encode()
    of_line = np.frombuffer(lines.indices.buffers()[1], np.int32)[: len(begins) - 1]
    odd = ((codes[start] == _ZERO) & (length > 1)).view(np.uint8) * LEADS
    for bit, most in ((NO_COUNT, _COUNT), (NO_FRACTION, _FRACTION), (NO_EXPONENT, _EXPONENT)):
        odd |= (length > most).view(np.uint8) * bit
    return _Chunk(
        raw,
        begins,
        lines.dictionary.to_pylist(),
        of_line.astype(np.int64),
        first[:-1],
        _values(raw, end, length),
        np.minimum(length, _MOST),
        odd,
    )


def _runs(codes: Codes) -> tuple[Ints, Ints]:
    """Where runs that may be numbers begin and end."""
    inside = codes - np.uint8(_ZERO) < _DIGITS
    edges = np.flatnonzero(inside[1:] != inside[:-1]) + 1
    if inside.size and inside[0]:
        edges = np.concatenate([np.zeros(1, np.int64), edges])
    start, end = edges[::2], edges[1::2]
    # What stands before the first line is the end of the last one.
    before, after = codes[start - 1], codes[end]
    kept = np.flatnonzero(_BEFORE[before] | _AFTER[after] | ((before == _MINUS) & (after == _POINT)))
    return start[kept], end[kept]


def _values(raw: Raw, end: Ints, length: Ints) -> Ints:
    """The numbers that runs of at most `LONGEST` digits write; of longer ones, any."""
    # A number is looked at in the words that end with it: what stands at the very begin needs something before it.
    if end.size and end[0] < 2 * _WORD:
        raw, end = b"".join((bytes(2 * _WORD), raw)), end + 2 * _WORD
    words = np.ndarray((max(0, len(raw) - _WORD + 1),), "V8", raw, 0, (1,))
    out = _numbers(words[end - _WORD], np.minimum(length, _WORD))
    longer = np.flatnonzero(length > _WORD)
    if longer.size:
        out[longer] += _numbers(words[end[longer] - 2 * _WORD], np.minimum(length[longer], LONGEST) - _WORD) * 10**_WORD
    return out


def _numbers(words: npt.NDArray[np.void], digits: Ints) -> Ints:
    """What the last so many of eight bytes write, which are digits: pairs are added up, then pairs of pairs."""
    unread = ((_WORD - digits) * 8).view(np.uint64)
    found = words.view("<u8") ^ np.uint64(0x3030303030303030)
    found >>= unread
    found <<= unread
    found = (found * np.uint64(10) + (found >> np.uint64(8))) & np.uint64(0x00FF00FF00FF00FF)
    found = (found * np.uint64(100) + (found >> np.uint64(16))) & np.uint64(0x0000FFFF0000FFFF)
    found = (found * np.uint64(10_000) + (found >> np.uint64(32))) & np.uint64(0xFFFFFFFF)
    return cast("Ints", found.view(np.int64))
