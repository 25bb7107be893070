"""Sets of positions as few bytes. In memory a set is an integer whose bit p says whether position p is in it.

An event covers *rows*, one for each (layer, head) of its scope, layers outermost. All its rows have the same number of
positions, `width`. What is stored, smallest first:

    ALL       nothing: every position of every row.
    RULE      varint sinks, varint window, and a byte 1 where the rule stands: the first and the last so many positions.
    RANGES    byte 0 (one row for all) or 1 (a row each); per row varint number of runs, then per run two varints:
              positions left out since the run before, and its length less 1.
    BITMAP_Z  byte of flags; then one bit for each position, the lowest of a byte first. Flags: 1 a row each, 2 turned
              (all rows of position 0, then of position 1, ...), 4 as it is; without 4 it is under zstd.
    DELTA     nothing: the set of the base event; or a byte (0 RANGES, 1 BITMAP_Z, 2 ALL) and, so stored, the positions
              that are in just one of the two.
    COUNT     nothing: only how many; or in how many rows each position is: byte of width 1, 2 or 4, plus 16 where what
              follows is under zstd; the numbers little-endian, first the lowest byte of all, then the next.

Varints are 7 bits a byte, lowest first, the highest bit set where more follow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from weighbridge.schemas.enumerations import Encoding
from weighbridge.schemas.errors import ContractError
from weighbridge.schemas.position_bitmaps import inflated, pack_bitmap, squeezed, unpack_bitmap

Rows = tuple[int, ...]
_EACH: Final = 1
_ZSTD: Final = 16
# No compressed bitmap is smaller than that.
_LEAST: Final = 13
_INNER: Final = (Encoding.RANGES, Encoding.BITMAP_Z, Encoding.ALL)
# Few positions are shifted one by one; Arrow reads many at once.
_FEW: Final = 16
_CURE: Final = "capture it again, or leave this trace out"


@dataclass(frozen=True, slots=True)
class Rule:
    """The first `sinks` and the last `window` positions.

    Attributes:
        standing: it holds again after every later APPEND to its rows, as in a sliding window; otherwise once.
    """

    sinks: int
    window: int
    standing: bool = False

    def row(self, width: int) -> int:
        """The set among `width` positions."""
        if self.sinks + self.window >= width:
            return full(width)
        return full(self.sinks) | full(self.window) << (width - self.window)

    def packed(self) -> bytes:
        """Its stored form."""
        return varints((self.sinks, self.window)) + (b"\x01" if self.standing else b"")


def full(width: int) -> int:
    """Every position below `width`."""
    return (1 << width) - 1


def row_of(positions: Iterable[int]) -> int:
    """The set of these positions."""
    ordered = list(positions)
    if not ordered:
        return 0
    if min(ordered) < 0:
        raise ContractError(f"position {min(ordered)} is below 0; positions count from 0")
    bits = bytearray(max(ordered) // 8 + 1)
    for position in ordered:
        bits[position >> 3] |= 1 << (position & 7)
    return int.from_bytes(bits, "little")


def positions_of(row: int) -> tuple[int, ...]:
    """The positions of a set, ascending."""
    if row.bit_count() <= _FEW:
        out = []
        while row:
            lowest = row & -row
            out.append(lowest.bit_length() - 1)
            row ^= lowest
        return tuple(out)
    size = row.bit_length()
    bits = pa.py_buffer(row.to_bytes((size + 7) // 8, "little"))
    return tuple(pc.indices_nonzero(pa.Array.from_buffers(pa.bool_(), size, [None, bits])).to_pylist())


def runs_of(row: int) -> list[tuple[int, int]]:
    """The runs of neighbouring positions, first and last of each."""
    return list(zip(positions_of(row & ~(row << 1)), positions_of(row & ~(row >> 1)), strict=True))


def pack_rows(rows: Rows, width: int, *, quick: bool = False) -> tuple[Encoding, bytes | None]:
    """Store the rows of an event in the fewest bytes.

    Args:
        quick: take a few bytes more where that is quicker.

    Raises:
        ContractError: a position is not below `width`.
    """
    every = full(width)
    if min(rows) < 0 or max(rows) > every:
        raise ContractError(f"a position is beyond the {width} there are; positions count from 0")
    if min(rows) == every:
        return Encoding.ALL, None
    kept = rows[:1] if len(set(rows)) == 1 else rows
    runs = sum((row & ~(row << 1)).bit_count() for row in kept)
    ranges = None
    # Of scattered positions the runs take more than the bitmap, and are not even written out.
    if runs * 16 < len(kept) * width:
        ranges = bytes([_EACH * (len(kept) > 1)]) + b"".join(map(_ranges, kept))
        if len(ranges) <= _LEAST:
            return Encoding.RANGES, ranges
    bitmap = pack_bitmap(kept, width, quick=quick)
    if ranges is not None and len(ranges) <= len(bitmap):
        return Encoding.RANGES, ranges
    return Encoding.BITMAP_Z, bitmap


def pack_difference(rows: Rows, base: Rows, width: int) -> bytes | None:
    """The payload of a DELTA: what differs from a base of the same rows, or nothing."""
    differing = tuple(row ^ before for row, before in zip(rows, base, strict=True))
    if not any(differing):
        return None
    encoding, payload = pack_rows(differing, width, quick=True)
    return bytes([_INNER.index(encoding)]) + (payload or b"")


def unpack_rows(encoding: Encoding, payload: bytes | None, count: int, width: int) -> Rows:
    """The rows of a stored set; ALL, RULE, RANGES and BITMAP_Z.

    Raises:
        ContractError: the payload is not what the encoding says.
    """
    if encoding is Encoding.ALL:
        return (full(width),) * count
    try:
        if encoding is Encoding.RULE:
            return (rule_of(payload).row(width),) * count
        rows = _from_ranges(payload or b"", count, width) if encoding is Encoding.RANGES else unpack_bitmap(
            payload or b"", count, width
        )  # fmt: skip
    except (IndexError, ValueError, OSError, StopIteration):
        # The library's message may quote bytes, so it is not chained.
        raise ContractError(f"a set of positions under {encoding} cannot be read; {_CURE}") from None
    if any(row >> width for row in rows):
        raise ContractError(f"a set of positions under {encoding} has more than the {width} it states; {_CURE}")
    return rows * count if len(rows) == 1 else rows


def unpack_difference(payload: bytes | None, base: Rows, width: int) -> Rows:
    """The rows of a DELTA.

    Raises:
        ContractError: the payload is no difference.
    """
    if payload is None:
        return base
    if not payload or payload[0] >= len(_INNER):
        raise ContractError(f"a difference of sets of positions cannot be read; {_CURE}")
    differing = unpack_rows(_INNER[payload[0]], payload[1:], len(base), width)
    return tuple(row ^ before for row, before in zip(differing, base, strict=True))


def rule_of(payload: bytes | None) -> Rule:
    """The rule of a RULE.

    Raises:
        ContractError: the payload holds none.
    """
    numbers = iter(payload or b"")
    try:
        return Rule(_varint(numbers), _varint(numbers), next(numbers, 0) == 1)
    except StopIteration:
        raise ContractError(f"a rule of positions cannot be read; {_CURE}") from None


def counts_of(rows: Rows, width: int) -> tuple[int, ...]:
    """In how many rows each position is."""
    counts = [0] * width
    for row, times in _tally(rows).items():
        for position in positions_of(row):
            counts[position] += times
    return tuple(counts)


def pack_counts(counts: Sequence[int]) -> bytes:
    """Store in how many rows each position is."""
    most = max(counts, default=0)
    width = 1 if most < 1 << 8 else 2 if most < 1 << 16 else 4
    raw = b"".join(bytes(count >> 8 * plane & 0xFF for count in counts) for plane in range(width))
    packed = squeezed(raw)
    return bytes([width | _ZSTD]) + packed if len(packed) < len(raw) else bytes([width]) + raw


def unpack_counts(payload: bytes, width: int) -> tuple[int, ...]:
    """In how many rows each of `width` positions is.

    Raises:
        ContractError: the payload holds no such numbers.
    """
    size = (payload[0] & ~_ZSTD if payload else 0) * width
    try:
        raw = inflated(payload[1:], size) if payload and payload[0] & _ZSTD else payload[1:]
    except (ValueError, OSError):
        raise ContractError(f"counts of positions cannot be read; {_CURE}") from None
    if len(raw) != size or (width and not size):
        raise ContractError(f"counts of positions are not the {width} they state; {_CURE}")
    planes = [raw[at : at + width] for at in range(0, size, width)] if width else []
    return tuple(sum(byte << 8 * plane for plane, byte in enumerate(bytes_)) for bytes_ in zip(*planes, strict=True))


def varints(numbers: Iterable[int]) -> bytes:
    """Numbers of 0 and up as varints."""
    out = bytearray()
    for number in numbers:
        left = number
        while left > 0x7F:
            out.append(left & 0x7F | 0x80)
            left >>= 7
        out.append(left)
    return bytes(out)


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """The number at an offset, and the offset after it.

    Raises:
        IndexError: the data ends before the number does.
    """
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def from_varints(data: bytes) -> Iterator[int]:
    """The numbers of varints, to the end of the data; what is cut ends it."""
    numbers = iter(data)
    while True:
        try:
            yield _varint(numbers)
        except StopIteration:
            return


def _varint(numbers: Iterator[int]) -> int:
    value = shift = 0
    while True:
        byte = next(numbers)
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value
        shift += 7


def _tally(rows: Rows) -> dict[int, int]:
    tally: dict[int, int] = {}
    for row in rows:
        tally[row] = tally.get(row, 0) + 1
    return tally


def _ranges(row: int) -> bytes:
    runs, numbers, at = runs_of(row), [], 0
    for first, last in runs:
        numbers += [first - at, last - first]
        at = last + 1
    return varints([len(runs), *numbers])


def _from_ranges(payload: bytes, count: int, width: int) -> Rows:
    each, numbers = payload[0] & _EACH, iter(payload[1:])
    rows = []
    for _ in range(count if each else 1):
        row = at = 0
        for _ in range(_varint(numbers)):
            at += _varint(numbers)
            length = _varint(numbers) + 1
            if at + length > width:  # before a damaged length takes memory
                raise ValueError("range")
            row |= full(length) << at
            at += length
        rows.append(row)
    return tuple(rows)
