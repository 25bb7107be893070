"""The bytes of rows made a column at a time are those that are made a row at a time."""

from __future__ import annotations

import math
import random
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from weighbridge.pipeline.close.layout import CLOSED
from weighbridge.pipeline.lake import polars_schema, row_bytes
from weighbridge.schemas import canonical
from weighbridge.schemas.enumerations import Domain
from weighbridge.schemas.table import Column, Table
from weighbridge.schemas.tables import TABLES

_WORDS = ("", "x", "chat", "Ä", "机器", "a\x00b", "long " * 60)
_AMOUNTS = ("0", "-0", "1", "-1.50", "0.000000000000000001", "12345678901234567890.000000000000000000")
_REALS = (0.0, -0.0, 1.5, -math.inf, math.nan, 5e-324)


def value(draw: random.Random, kind: pa.DataType) -> Any:
    """Some value of a type."""
    if pa.types.is_list(kind):
        return [None if draw.random() < 0.2 else value(draw, kind.value_type) for _ in range(draw.choice([0, 0, 1, 3]))]
    if pa.types.is_boolean(kind):
        return draw.random() < 0.5
    if pa.types.is_integer(kind):
        limit = 2 ** (kind.bit_width - 1)
        return draw.choice([0, 1, -1, -limit, limit - 1, draw.randrange(-limit, limit)])
    if pa.types.is_date(kind):
        return draw.choice([date.min, date(1969, 12, 31), date(2026, 3, 29), date.max])
    if pa.types.is_timestamp(kind):
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=draw.randrange(-(10**15), 4 * 10**15))
    if pa.types.is_floating(kind):
        return draw.choice(_REALS)
    if pa.types.is_decimal(kind):
        return Decimal(draw.choice(_AMOUNTS))
    word = draw.choice(_WORDS)
    return word.encode() if pa.types.is_binary(kind) else word


def some(table: Table, number: int, seed: int, share_of_nulls: float = 0.3) -> pa.Table:
    """Rows of a table, whatever its columns allow."""
    draw = random.Random(seed)
    columns = {
        column.name: pa.array(
            [None if draw.random() < share_of_nulls else value(draw, column.type) for _ in range(number)], column.type
        )
        for column in table.columns
    }
    return pa.table(columns)


EVERY = Table(
    "every",
    Domain.BILLING,
    "Every type.",
    tuple(
        Column(f"c{place}", kind, "")
        for place, kind in enumerate(
            (
                *(pa.int32(), pa.int64(), pa.bool_(), pa.date32(), pa.timestamp("us", tz="UTC"), pa.float64()),
                *(pa.decimal128(38, 18), pa.string(), pa.binary(), pa.list_(pa.string()), pa.list_(pa.int64())),
                *(pa.large_string(), pa.list_(pa.list_(pa.string()))),
            )
        )
    ),
    key=("c0",),
)


@pytest.mark.parametrize("nulls", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("number", [0, 1, 2, 300])
def test_every_type_has_the_same_bytes(number: int, nulls: float) -> None:
    data = some(EVERY, number, seed=number, share_of_nulls=nulls)
    assert list(row_bytes.rows(EVERY, data)) == list(canonical.rows(EVERY, data))


@pytest.mark.parametrize("name", CLOSED)
def test_every_table_of_a_close_has_the_same_bytes(name: str) -> None:
    data = some(CLOSED[name], 40, seed=7)
    assert list(row_bytes.rows(CLOSED[name], data)) == list(canonical.rows(CLOSED[name], data))


def test_neither_chunks_nor_slices_change_a_byte(monkeypatch: pytest.MonkeyPatch) -> None:
    data = some(EVERY, 100, seed=3)
    whole = list(canonical.rows(EVERY, data))
    assert list(row_bytes.rows(EVERY, data.slice(17, 31))) == whole[17:48]
    halves = pa.concat_tables([data.slice(0, 40), data.slice(40)])
    assert list(row_bytes.rows(EVERY, halves)) == whole
    monkeypatch.setattr(row_bytes, "_CHUNK", 7)
    assert list(row_bytes.rows(EVERY, data)) == whole


def test_a_column_that_is_missing_is_named() -> None:
    with pytest.raises(KeyError, match="rows of every lack the columns c3"):
        list(row_bytes.rows(EVERY, some(EVERY, 1, seed=1).drop_columns(["c3"])))


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("number", [0, 3, 300])
def test_the_digest_of_a_frame_is_that_of_its_rows(name: str, number: int) -> None:
    table = TABLES[name]
    frame = pl.DataFrame(some(table, number, seed=5)).cast(polars_schema(name))  # type: ignore[arg-type]
    wanted = canonical.digest(canonical.rows(table, frame.to_arrow()))
    assert row_bytes.digest(table, frame.reverse()) == wanted
