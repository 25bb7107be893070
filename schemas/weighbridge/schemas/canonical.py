"""Canonical bytes: one row, one sequence of bytes, whatever library, file or row order it came from.

Layout of a row: per column in the order of the table, one byte 0 for null or 1 for a value, then the value:
integers and dates and times as 8 bytes big-endian signed (days, microseconds since 1970), booleans as 1 byte,
floats as the 8 bytes of IEEE 754 big-endian (-0.0 as 0.0, every NaN as one), decimals as the text of the number
without trailing zeros, text and bytes as they are, both with a 4-byte length before them; lists as a 4-byte count
and then each item as if it were a column. The digest of a table is SHA-256 over the rows sorted by these bytes, each
with a 4-byte length before it. This layout is frozen by a test.
"""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa

from weighbridge.schemas.table import Table

Encode = Callable[[object], bytes]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY0 = date(1970, 1, 1).toordinal()
_SIZE = struct.Struct(">I")
_INT = struct.Struct(">q")
_FLOAT = struct.Struct(">d")


def _sized(raw: bytes) -> bytes:
    return _SIZE.pack(len(raw)) + raw


def _moment(value: object) -> bytes:
    if not isinstance(value, datetime):
        raise TypeError(f"a time is expected, found {type(value).__name__}")
    delta = (value if value.tzinfo else value.replace(tzinfo=UTC)) - _EPOCH
    return _INT.pack((delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds)


def _day(value: object) -> bytes:
    if not isinstance(value, date):
        raise TypeError(f"a date is expected, found {type(value).__name__}")
    return _INT.pack(value.toordinal() - _DAY0)


def _real(value: object) -> bytes:
    number = float(value)  # type: ignore[arg-type]
    return _FLOAT.pack(math.nan if math.isnan(number) else number + 0.0)


def _decimal(value: object) -> bytes:
    digits = format(Decimal(str(value)), "f")
    if "." in digits:
        digits = digits.rstrip("0").rstrip(".")
    return _sized(("0" if digits == "-0" else digits).encode())


def _list(value: object, item: Encode) -> bytes:
    if not isinstance(value, list):
        raise TypeError(f"a list is expected, found {type(value).__name__}")
    return _SIZE.pack(len(value)) + b"".join(b"\x00" if part is None else b"\x01" + item(part) for part in value)


def encoder(kind: pa.DataType) -> Encode:
    """The function that turns one non-null value of an Arrow type into its canonical bytes.

    Raises:
        TypeError: the vocabulary has no such type.
    """
    if pa.types.is_boolean(kind):
        return lambda value: b"\x01" if value else b"\x00"
    if pa.types.is_signed_integer(kind):
        return _INT.pack
    if pa.types.is_date32(kind):
        return _day
    if pa.types.is_timestamp(kind):
        return _moment
    if pa.types.is_floating(kind):
        return _real
    if pa.types.is_decimal(kind):
        return _decimal
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return lambda value: _sized(str(value).encode())
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return lambda value: _sized(bytes(value))  # type: ignore[call-overload]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        item = encoder(kind.value_type)
        return lambda value: _list(value, item)
    raise TypeError(f"no canonical form for the Arrow type {kind}; the vocabulary uses no such column")


def rows(table: Table, data: pa.Table) -> Iterator[bytes]:
    """The canonical bytes of each row of `data`, in its order.

    Raises:
        KeyError: a column of the table is missing from `data`. Columns the table does not have are left out.
    """
    encoders = [encoder(column.type) for column in table.columns]
    missing = [name for name in table.names if name not in data.column_names]
    if missing:
        raise KeyError(f"rows of {table.name} lack the columns {', '.join(missing)}")
    for batch in data.select(list(table.names)).to_batches(max_chunksize=16_384):
        columns = [column.to_pylist() for column in batch.columns]
        for row in zip(*columns, strict=True):
            yield b"".join(
                b"\x00" if value is None else b"\x01" + encode(value)
                for encode, value in zip(encoders, row, strict=True)
            )


def digest(canonical_rows: Iterable[bytes]) -> str:
    """SHA-256, in hexadecimal, over canonical rows in sorted order: independent of files and of row order."""
    state = hashlib.sha256()
    for row in sorted(canonical_rows):
        state.update(_SIZE.pack(len(row)))
        state.update(row)
    return state.hexdigest()
