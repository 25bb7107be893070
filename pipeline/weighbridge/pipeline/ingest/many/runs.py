"""The runs of digits in a block of lines, as arrays: where each begins, how long it is, and where it stands.

Lines that are equal once their digits are deleted, and whose runs stand at the same places of what is left, differ in
nothing but these digits. They have the same tokens in the same order, so what one of them says all of them say, with
other numbers.

    {"prompt_tokens": 9, "model": "gpt-5"}      {"prompt_tokens": , "model": "gpt-"}      runs at 18 and 33
    {"prompt_tokens": 120, "model": "gpt-5"}    {"prompt_tokens": , "model": "gpt-"}      runs at 18 and 33
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
DIGITS = b"0123456789"
# A whole number of as many digits fits 64 bits; a longer one is looked at by itself.
LONGEST = 18
_NEWLINE, _ZERO = 10, 48


@dataclass(frozen=True, slots=True)
class Block:
    """Whole lines, and the runs of digits in them.

    Attributes:
        lines: the lines without their ends.
        bare: the lines without their digits.
        first: of each line, its first run; one more at the end.
        start, length: of each run, its place in the block and its number of digits.
        place: of each run, its place in the bare line.
        digits: the block as numbers 0 to 9 where it has digits.
    """

    raw: bytes
    begins: Ints
    ends: Ints
    bare: list[bytes]
    first: Ints
    start: Ints
    length: Ints
    place: Ints
    digits: npt.NDArray[np.uint8]

    def line(self, number: int) -> bytes:
        """One line without its end."""
        return self.raw[self.begins[number] : self.ends[number]]

    def values(self, runs: Ints) -> Ints:
        """The numbers that runs of at most `LONGEST` digits write; of a longer one, anything."""
        start, length = self.start[runs], self.length[runs]
        out = self.digits[start].astype(np.int64)
        longer = np.flatnonzero(length > 1)
        for nth in range(1, LONGEST):
            if not longer.size:
                break
            out[longer] = out[longer] * 10 + self.digits[start[longer] + nth]
            longer = longer[length[longer] > nth + 1]
        return out

    def leads(self, runs: Ints) -> npt.NDArray[np.bool_]:
        """Whether a run of several digits begins with a zero, as no number of JSON does."""
        zero: npt.NDArray[np.bool_] = (self.digits[self.start[runs]] == 0) & (self.length[runs] > 1)
        return zero


def block_of(raw: bytes) -> Block:
    """The runs of a block of whole lines; the last one too ends with a newline."""
    codes = np.frombuffer(raw, np.uint8)
    ends = np.flatnonzero(codes == _NEWLINE)
    begins = np.concatenate([np.zeros(1, np.int64), ends[:-1] + 1])
    digits = codes - np.uint8(_ZERO)
    inside = digits < len(DIGITS)
    edges = np.flatnonzero(inside[1:] != inside[:-1]) + 1
    if inside.size and inside[0]:
        edges = np.concatenate([np.zeros(1, np.int64), edges])
    start, length = edges[::2], edges[1::2] - edges[::2]
    first = np.searchsorted(start, np.append(begins, len(raw)))
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(length)])
    of_line = begins - before[first[:-1]]
    place = start - before[:-1] - np.repeat(of_line, np.diff(first))
    bare = raw.translate(None, DIGITS).split(b"\n")
    bare.pop()
    return Block(raw, begins, ends, bare, first, start, length, place, digits)
