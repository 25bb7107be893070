"""The payload of BITMAP_Z (`position_sets` says what lies in it): one bit for each position of each row, under zstd."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

Rows = tuple[int, ...]
_EACH: Final = 1
_TURNED: Final = 2
_PLAIN: Final = 4
# Which form is the smallest shows at the quick level. Where little is to be gained, or a trace has many such sets, it
# is left at that: the thorough one takes ten to twenty times as long.
_QUICK, _THOROUGH = (pa.Codec("zstd", compression_level=level) for level in (9, 19))
_WORTH: Final = 0.97


def pack_bitmap(rows: Rows, width: int, *, quick: bool) -> bytes:
    """The smallest of the bitmap row by row, position by position, and not compressed at all."""
    each = _EACH * (len(rows) > 1)
    raw = {each: _straight(rows, width)}
    if each:
        raw[each | _TURNED] = _turned(rows, width)
    packed = {flags: squeezed(bits, _QUICK) for flags, bits in raw.items()}
    best = min(packed, key=lambda flags: len(packed[flags]))
    if len(packed[best]) >= len(raw[each]):
        return bytes([each | _PLAIN]) + raw[each]
    if not quick and len(packed[best]) < _WORTH * len(raw[each]):
        packed[best] = min(packed[best], squeezed(raw[best], _THOROUGH), key=len)
    return bytes([best]) + packed[best]


def unpack_bitmap(payload: bytes, count: int, width: int) -> Rows:
    """The rows of a bitmap of so many rows of `width`.

    Raises:
        ValueError, IndexError, OSError: it is none.
    """
    flags = payload[0]
    rows = count if flags & _EACH else 1
    size = (rows * width + 7) // 8
    raw = payload[1:] if flags & _PLAIN else inflated(payload[1:], size)
    if len(raw) != size:
        raise ValueError("size")
    bits = int.from_bytes(raw, "little")
    if bits >> rows * width:
        raise ValueError("bits beyond the last")
    if not width:
        return (0,) * rows
    # As text, whose digits are taken apart at once; the highest comes first.
    digits = format(bits, f"0{rows * width}b")
    if flags & _TURNED:
        return tuple(int(digits[rows - 1 - at :: rows], 2) for at in range(rows))
    return tuple(int(digits[width * (rows - 1 - at) : width * (rows - at)], 2) for at in range(rows))


def _straight(rows: Rows, width: int) -> bytes:
    """Bits of rows of `width`, row by row: bit (row x width + position)."""
    if not width % 8:
        return b"".join(row.to_bytes(width // 8, "little") for row in rows)
    return _of_digits("".join(format(row, f"0{width}b") for row in reversed(rows)))


def _turned(rows: Rows, width: int) -> bytes:
    """Bits of rows of `width`, position by position: bit (position x rows + row)."""
    count = len(rows)
    digits = bytearray(width * count)
    for at, row in enumerate(rows):
        digits[count - 1 - at :: count] = format(row, f"0{width}b").encode()
    return _of_digits(digits)


def _of_digits(digits: str | bytearray) -> bytes:
    """As bytes, the lowest bit of the first byte being the last digit."""
    return int(digits, 2).to_bytes((len(digits) + 7) // 8, "little") if digits else b""


def squeezed(raw: bytes, codec: pa.Codec = _THOROUGH) -> bytes:
    """Under zstd."""
    return bytes(codec.compress(raw, asbytes=True))


def inflated(packed: bytes, size: int) -> bytes:
    """What was under zstd.

    Raises:
        OSError, ValueError: it was not.
    """
    return bytes(pa.decompress(packed, size, codec="zstd", asbytes=True))
