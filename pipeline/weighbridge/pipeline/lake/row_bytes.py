"""The canonical bytes of rows (`schemas.canonical`), made a column at a time, as many rows need them.

The bytes of a chunk of rows lie in one buffer. Each column says how long it is in each row, so it is known where every
value begins; then each column writes its tags and values there at once. A test holds that every row is the same as
`canonical.rows` makes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from weighbridge.schemas import canonical
from weighbridge.schemas.table import Table

_CHUNK = 16_384
# Fewer rows than this are made faster one by one.
_FEW = 256
Ints = np.ndarray[Any, np.dtype[np.int64]]
Bytes = np.ndarray[Any, np.dtype[np.uint8]]
Part = tuple[Ints, Callable[[Bytes, Ints], None]]


def digest(table: Table, frame: pl.DataFrame) -> str:
    """As `canonical.digest` of the rows of a frame, whatever their order: 64 hexadecimal digits."""
    data = frame.select(table.names).to_arrow(compat_level=pl.CompatLevel.oldest())
    return canonical.digest((rows if data.num_rows >= _FEW else canonical.rows)(table, data))


def rows(table: Table, data: pa.Table) -> Iterator[bytes]:
    """As `canonical.rows`: the canonical bytes of each row, in order.

    Raises:
        KeyError: a column of the table is missing from `data`.
    """
    missing = [name for name in table.names if name not in data.column_names]
    if missing:
        raise KeyError(f"rows of {table.name} lack the columns {', '.join(missing)}")
    for start in range(0, data.num_rows, _CHUNK):
        yield from _chunk(table, data.slice(start, _CHUNK))


def _chunk(table: Table, data: pa.Table) -> Iterator[bytes]:
    parts = [_part(_whole(data.column(column.name)), column.type) for column in table.columns]
    lengths = np.zeros(data.num_rows, np.int64)
    for length, _ in parts:
        lengths += length
    ends = np.cumsum(lengths)
    place = ends - lengths
    buffer = np.zeros(int(ends[-1]) if len(ends) else 0, np.uint8)
    for length, write in parts:
        write(buffer, place)
        place = place + length
    raw, start = buffer.tobytes(), 0
    for end in ends.tolist():
        yield raw[start:end]
        start = end


def _whole(column: pa.ChunkedArray) -> pa.Array:
    whole = column.combine_chunks()
    return whole.combine_chunks() if isinstance(whole, pa.ChunkedArray) else whole


def _part(column: pa.Array, kind: pa.DataType) -> Part:
    """How long a column is in each row, and what writes it there: a byte for null or value, then the value."""
    valid = np.asarray(column.is_valid().to_numpy(zero_copy_only=False), dtype=bool)
    known = np.flatnonzero(valid)
    values = column.drop_null()
    if pa.types.is_nested(kind):
        return _of_lists(valid, known, values, kind)
    fixed = _fixed(values, kind)
    if fixed is not None:
        return _of_width(valid, known, fixed)
    return _of_words(valid, known, *_words(values, kind))


def _fixed(values: pa.Array, kind: pa.DataType) -> Bytes | None:
    """The bytes of values that are all as long, one row each; null where they are not."""
    if pa.types.is_boolean(kind):
        return _rows(values.to_numpy(zero_copy_only=False).astype(np.uint8), 1)
    if pa.types.is_signed_integer(kind):
        return _wide(values.cast(pa.int64()))
    if pa.types.is_date32(kind):
        return _wide(values.cast(pa.int32()).cast(pa.int64()))
    if pa.types.is_timestamp(kind):
        return _wide(values.cast(pa.timestamp("us", kind.tz)).cast(pa.int64()))
    if pa.types.is_floating(kind):
        real = values.cast(pa.float64()).to_numpy(zero_copy_only=False) + 0.0
        real = np.where(np.isnan(real), np.nan, real)
        return _rows(real.astype(">f8"), 8)
    return None


def _wide(values: pa.Array) -> Bytes:
    return _rows(values.to_numpy(zero_copy_only=False).astype(">i8"), 8)


def _rows(values: Any, width: int) -> Bytes:
    """The bytes of an array, one row for each of its values."""
    found: Bytes = np.ascontiguousarray(values).view(np.uint8).reshape(-1, width)
    return found


def _of_width(valid: Any, known: Ints, values: Bytes) -> Part:
    width = values.shape[1]

    def write(buffer: Bytes, place: Ints) -> None:
        buffer[place] = valid
        buffer[place[known, None] + np.arange(1, width + 1)] = values

    return 1 + width * valid.astype(np.int64), write


def _words(values: pa.Array, kind: pa.DataType) -> tuple[Sequence[bytes], Ints]:
    """The different values as bytes, and which of them each row has."""
    encode = canonical.encoder(kind)
    coded = values.dictionary_encode()
    codes = coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return [encode(value) for value in coded.dictionary.to_pylist()], codes


def _of_words(valid: Any, known: Ints, words: Sequence[bytes], codes: Ints) -> Part:
    sizes = np.fromiter((len(word) for word in words), np.int64, len(words))
    starts = np.cumsum(sizes) - sizes
    blob = np.frombuffer(b"".join(words), np.uint8)
    own = sizes[codes] if len(words) else np.zeros(0, np.int64)
    lengths = np.ones(len(valid), np.int64)
    lengths[known] += own

    def write(buffer: Bytes, place: Ints) -> None:
        buffer[place] = valid
        # One number per byte: which byte of its word it is.
        within = np.arange(int(own.sum())) - np.repeat(np.cumsum(own) - own, own)
        buffer[np.repeat(place[known] + 1, own) + within] = blob[np.repeat(starts[codes], own) + within]

    return lengths, write


def _of_lists(valid: Any, known: Ints, values: pa.Array, kind: pa.DataType) -> Part:
    """Lists: how many items, then each item as if it were a column."""
    counts = values.value_lengths().to_numpy(zero_copy_only=False).astype(np.int64)
    item_lengths, write_items = _part(values.flatten(), kind.value_type)
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(item_lengths)])
    last = np.cumsum(counts)
    first = last - counts
    lengths = np.ones(len(valid), np.int64)
    lengths[known] += 4 + ends[last] - ends[first]

    def write(buffer: Bytes, place: Ints) -> None:
        buffer[place] = valid
        begin = place[known] + 1
        buffer[begin[:, None] + np.arange(4)] = _rows(counts.astype(">i4"), 4)
        write_items(buffer, np.repeat(begin + 4 - ends[first], counts) + ends[:-1])

    return lengths, write
