"""The runs of digits in a block of lines, as arrays, and which lines are equal but for them.

Lines that are equal once each run of digits is one zero differ in nothing but these digits. They have the same tokens
in the same order, so what one of them says all of them say, with other numbers.

    {"prompt_tokens": 9, "model": "gpt-5"}      {"prompt_tokens": 0, "model": "gpt-0"}      runs 9 and 5
    {"prompt_tokens": 120, "model": "gpt-5"}    {"prompt_tokens": 0, "model": "gpt-0"}      runs 120 and 5
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Ints = npt.NDArray[np.int64]
Bits = npt.NDArray[np.bool_]
DIGITS = b"0123456789"
# A whole number of as many digits is read here; a longer one is looked at by itself.
LONGEST = 16
_WORD = 8
_NONE = np.zeros(0, np.int64)
_RUN = re.compile(rb"[0-9]+")
_NEWLINE, _ZERO = 10, 48
_ZEROS = bytes.maketrans(DIGITS, b"0" * len(DIGITS))


# A run as one number: where it begins, whether it begins with a zero and goes on, and how many digits it has.
_BEGIN_AT, _LEADS_AT, _MOST = 16, 15, 2**15 - 1


@dataclass(frozen=True, slots=True)
class Block:
    """Whole lines, and the runs of digits in them.

    Attributes:
        raw: the lines, each with its end.
        begins: where each line begins; one more at the end.
        bare: the distinct lines with a zero for each run, with their ends.
        of_line: which of `bare` each line is.
        first: of each line, its first run.
        runs: begin, leading zero and length of each run, as one number.
    """

    raw: bytes
    begins: Ints
    bare: list[bytes]
    of_line: Ints
    first: Ints
    runs: Ints
    _before: int
    _words: npt.NDArray[np.void]

    def line(self, number: int) -> bytes:
        """One line with its end."""
        return self.raw[self.begins[number] : self.begins[number + 1]]

    def digits(self, run: int) -> bytes:
        """The digits of one run."""
        begin = int(self.runs[run]) >> _BEGIN_AT
        found = _RUN.match(self.raw, begin)
        return found[0] if found else b""

    def values(self, runs: Ints) -> Ints:
        """The numbers that runs of at most `LONGEST` digits write, given as they stand in `runs`."""
        length = np.minimum(lengths(runs), LONGEST)
        end = (runs >> _BEGIN_AT) + (length + self._before)
        out = _numbers(self._words[end - _WORD], np.minimum(length, _WORD))
        longer = np.flatnonzero(length > _WORD)
        if longer.size:
            out[longer] += _numbers(self._words[end[longer] - 2 * _WORD], length[longer] - _WORD) * 10**_WORD
        return out


def lengths(runs: Ints) -> Ints:
    """How many digits runs have; of very long ones, many."""
    return runs & _MOST


def leads(runs: Ints) -> Bits:
    """Whether runs begin with a zero and go on, as no number of JSON does."""
    return cast("Bits", runs & 1 << _LEADS_AT != 0)


def _numbers(words: npt.NDArray[np.void], digits: Ints) -> Ints:
    """What the last so many of eight bytes write, which are digits: pairs are added up, then pairs of pairs."""
    unread = ((_WORD - digits) * 8).astype(np.uint64)
    found = words.view("<u8") ^ np.uint64(0x3030303030303030)
    found = (found >> unread) << unread
    found = (found * np.uint64(10) + (found >> np.uint64(8))) & np.uint64(0x00FF00FF00FF00FF)
    found = (found * np.uint64(100) + (found >> np.uint64(16))) & np.uint64(0x0000FFFF0000FFFF)
    found = (found * np.uint64(10_000) + (found >> np.uint64(32))) & np.uint64(0xFFFFFFFF)
    return found.astype(np.int64)


class _Chunk(NamedTuple):
    """What `Block` says, of one chunk."""

    bare: list[bytes]
    of_line: Ints
    begins: Ints
    first: Ints
    runs: Ints


def block_of(chunks: Sequence[bytes | memoryview]) -> Block:
    """The runs of a block, of which each chunk is whole lines, each with its end."""
    ids: dict[bytes, int] = {}
    of_line: list[Ints] = [_NONE]
    begins: list[Ints] = [_NONE]
    firsts: list[Ints] = [_NONE]
    runs: list[Ints] = [_NONE]
    begin = first = 0
    for raw in chunks:
        one = _chunk(bytes(raw))
        of_line.append(np.array([ids.setdefault(bare, len(ids)) for bare in one.bare], np.int64)[one.of_line])
        begins.append(one.begins + begin)
        firsts.append(one.first + first)
        runs.append(one.runs + (begin << _BEGIN_AT))
        begin, first = begin + len(raw), first + len(one.runs)
    all_runs = np.concatenate(runs)
    # A number is looked at in the words that end with it: what stands at the very begin needs something before it.
    before = 2 * _WORD if len(all_runs) and all_runs[0] >> _BEGIN_AT < 2 * _WORD else 0
    seen = b"".join((bytes(before), *chunks))
    words = np.ndarray((max(0, len(seen) - _WORD + 1),), "V8", seen, 0, (1,))
    raw = seen[before:] if before else seen
    ends = np.array([begin], np.int64)
    return Block(
        raw,
        np.concatenate([*begins, ends]),
        list(ids),
        np.concatenate(of_line),
        np.concatenate(firsts),
        all_runs,
        before,
        words,
    )


def _chunk(raw: bytes) -> _Chunk:
    zeros = raw.translate(_ZEROS)
    codes = np.frombuffer(zeros, np.uint8)
    begins = np.concatenate([np.zeros(1, np.int64), np.flatnonzero(codes == _NEWLINE) + 1])
    inside = codes == _ZERO
    edges = np.flatnonzero(inside[1:] != inside[:-1]) + 1
    if inside.size and inside[0]:
        edges = np.concatenate([np.zeros(1, np.int64), edges])
    start, end = edges[::2], edges[1::2]
    first = np.searchsorted(start, begins)
    # Of each run the first digit stays.
    length = end - start
    bare = without(zeros, start + 1, end)
    gone = np.concatenate([np.zeros(1, np.int64), np.cumsum(length - 1)])
    lines = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(begins) - 1, [None, pa.py_buffer(begins - gone[first]), pa.py_buffer(bare)]
    ).dictionary_encode()
    of_line = np.frombuffer(lines.indices.buffers()[1], np.int32)[: len(begins) - 1]
    leading = (np.frombuffer(raw, np.uint8)[start] == _ZERO) & (length > 1)
    runs = start << _BEGIN_AT | leading.astype(np.int64) << _LEADS_AT | np.minimum(length, _MOST)
    return _Chunk(lines.dictionary.to_pylist(), of_line.astype(np.int64), begins[:-1], first[:-1], runs)


def without(raw: bytes, begins: Ints, ends: Ints) -> bytes | memoryview:
    """Bytes without the spans that begin and end there, which are in order and do not overlap."""
    if not len(begins):
        return raw
    cuts = np.empty(2 * len(begins) + 2, np.int64)
    cuts[0], cuts[1:-1:2], cuts[2:-1:2], cuts[-1] = 0, begins, ends, len(raw)
    spans = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(cuts) - 1, [None, pa.py_buffer(cuts), pa.py_buffer(raw)]
    )
    # Every other span is kept. Arrays of Arrow are made from buffers: from NumPy's they are by way of pandas.
    kept = pa.Array.from_buffers(pa.bool_(), len(spans), [None, pa.py_buffer(b"\x55" * (len(spans) // 8 + 1))])
    return memoryview(spans.filter(kept).buffers()[2])
