"""Token ids as few bytes. Two methods; the first byte says which.

1, planes: the four bytes of each id apart, each plane under zstd. Fast, for the serving host.
2, ranks: ids become their rank in the block by frequency (equal ones by id). Ranks below 192 take one byte, those up
to 16,319 a second one that is kept apart because it is close to random, the rest four more. Each stream is under zstd,
which by then codes little but the frequencies. The ids in order of rank are stored as differences.

Numbers are little-endian; a section is its length in 8 bytes and its bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from weighbridge.schemas.block import BlockError

PLANES: Final = 1
RANKS: Final = 2
_ONE_BYTE: Final = 192
_WIDE: Final = 255
_SPOOL_LEVEL: Final = 3
_LAKE_LEVEL: Final = 9
_WORD: Final = 4


def pack_planes(ids: bytes) -> bytes:
    """Pack unsigned 32-bit ids by method 1."""
    count = len(ids) // _WORD
    return bytes([PLANES]) + count.to_bytes(8, "little") + _planes(ids, _SPOOL_LEVEL)


def pack_ranks(ids: bytes) -> bytes:
    """Pack unsigned 32-bit ids by method 2."""
    count = len(ids) // _WORD
    values = _array(pa.uint32(), ids)
    counted = pc.value_counts(values)
    order = pa.table({"id": counted.field("values"), "n": counted.field("counts")}).sort_by(
        [("n", "descending"), ("id", "ascending")]
    )
    known = order.column("id").combine_chunks()
    rank = pc.cast(pc.index_in(values, value_set=known), pa.uint32())
    beyond = pc.filter(rank, pc.greater_equal(rank, _ONE_BYTE))
    past = pc.subtract(beyond, _u32(_ONE_BYTE))
    upper = pc.shift_right(past, _u32(8))
    lead = pc.min_element_wise(pc.add(upper, _u32(_ONE_BYTE)), _u32(_WIDE))
    first = pc.replace_with_mask(rank, pc.greater_equal(rank, _ONE_BYTE), lead)
    second = pc.bit_wise_and(past, _u32(0xFF))
    rest = pc.filter(upper, pc.greater_equal(upper, _u32(_WIDE - _ONE_BYTE)))
    return b"".join(
        (
            bytes([RANKS]),
            count.to_bytes(8, "little"),
            len(known).to_bytes(8, "little"),
            len(beyond).to_bytes(8, "little"),
            len(rest).to_bytes(8, "little"),
            _planes(_bytes(_differences(known)), _LAKE_LEVEL),
            _section(_bytes(pc.cast(first, pa.uint8())), _LAKE_LEVEL),
            _section(_bytes(pc.cast(second, pa.uint8())), _LAKE_LEVEL),
            _planes(_bytes(rest), _LAKE_LEVEL),
        )
    )


def unpack(packed: bytes) -> bytes:
    """The ids of a packed block, little-endian unsigned 32-bit.

    Raises:
        BlockError: a method this version does not know, or bytes that are no packed block.
    """
    method = packed[0] if packed else 0
    if method not in (PLANES, RANKS):
        raise BlockError(f"packing method {method} is of a later version; upgrade weighbridge on this host")
    try:
        return _unpack_planes(packed) if method == PLANES else _unpack_ranks(packed)
    except (pa.ArrowException, OSError, ValueError, IndexError, OverflowError):
        # The libraries' messages quote values, so they are not chained.
        raise BlockError("a block opened, but what it holds is no packed run of ids") from None


def _unpack_planes(packed: bytes) -> bytes:
    count = int.from_bytes(packed[1:9], "little")
    return _from_planes(_sections(packed, 9), count)


def _unpack_ranks(packed: bytes) -> bytes:
    count, known, beyond, rest = (int.from_bytes(packed[at : at + 8], "little") for at in range(1, 33, 8))
    sections = _sections(packed, 33)
    ids = _sums(_array(pa.uint32(), _from_planes(sections, known)))
    first = pc.cast(_array(pa.uint8(), _inflated(next(sections), count)), pa.uint32())
    second = pc.cast(_array(pa.uint8(), _inflated(next(sections), beyond)), pa.uint32())
    wide = _array(pa.uint32(), _from_planes(sections, rest))
    more = pc.greater_equal(first, _u32(_ONE_BYTE))
    lead = pc.filter(first, more)
    upper = pc.replace_with_mask(pc.subtract(lead, _u32(_ONE_BYTE)), pc.equal(lead, _u32(_WIDE)), wide)
    large = pc.add(pc.add(pc.shift_left(upper, _u32(8)), second), _u32(_ONE_BYTE))
    rank = pc.replace_with_mask(first, more, large)
    return _bytes(pc.take(ids, rank))


def _differences(ids: pa.Array) -> pa.Array:
    """Each id less the one before, signs folded in, so that small steps either way are small numbers."""
    before = pa.concat_arrays([pa.array([0], pa.uint32()), ids])[: len(ids)]
    step = pc.subtract(ids, before).view(pa.int32())
    sign = pc.negate(pc.cast(pc.less(step, 0), pa.int32()))
    folded = pc.bit_wise_xor(pc.multiply(step, _i32(2)), sign)
    return folded.view(pa.uint32())


def _sums(folded: pa.Array) -> pa.Array:
    """The ids whose folded differences these are; all arithmetic is modulo 2**32."""
    sign = pc.negate(pc.bit_wise_and(folded, _u32(1)).view(pa.int32())).view(pa.uint32())
    return pc.cumulative_sum(pc.bit_wise_xor(pc.shift_right(folded, _u32(1)), sign))


def _planes(words: bytes, level: int) -> bytes:
    return b"".join(_section(words[plane::_WORD], level) for plane in range(_WORD))


def _from_planes(sections: Iterator[bytes], count: int) -> bytes:
    out = bytearray(_WORD * count)
    for plane in range(_WORD):
        out[plane::_WORD] = _inflated(next(sections), count)
    return bytes(out)


def _section(data: bytes, level: int) -> bytes:
    """A compressed section; one of nothing but zeros is empty."""
    packed = pa.Codec("zstd", compression_level=level).compress(data, asbytes=True) if any(data) else b""
    return len(packed).to_bytes(8, "little") + packed


def _sections(packed: bytes, at: int) -> Iterator[bytes]:
    while at < len(packed):
        size = int.from_bytes(packed[at : at + 8], "little")
        yield packed[at + 8 : at + 8 + size]
        at += 8 + size
    raise ValueError("a section is missing")


def _inflated(section: bytes, size: int) -> bytes:
    return bytes(pa.decompress(section, size, codec="zstd", asbytes=True)) if section else bytes(size)


def _array(kind: pa.DataType, data: bytes) -> pa.Array:
    return pa.Array.from_buffers(kind, len(data) * 8 // kind.bit_width, [None, pa.py_buffer(data)])


def _bytes(values: Any) -> bytes:
    """The values of an Arrow array without nulls, as they lie in memory."""
    width = values.type.bit_width // 8
    data = values.buffers()[1]
    return b"" if data is None else bytes(data[values.offset * width : (values.offset + len(values)) * width])


def _u32(value: int) -> pa.Scalar:
    return pa.scalar(value, pa.uint32())


def _i32(value: int) -> pa.Scalar:
    return pa.scalar(value, pa.int32())
