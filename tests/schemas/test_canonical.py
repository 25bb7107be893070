"""Canonical bytes: the layout is frozen by a row worked out by hand, and nothing but the values counts."""

from __future__ import annotations

import hashlib
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import pyarrow as pa
import pytest

from weighbridge.schemas.canonical import digest, encoder, rows
from weighbridge.schemas.enumerations import Domain
from weighbridge.schemas.table import MONEY, TIME, Column, Table

EXAMPLE = Table(
    "example",
    Domain.BILLING,
    "One column of every type of the vocabulary.",
    (
        Column("whole", pa.int64(), "a count"),
        Column("small", pa.int32(), "an ordinal"),
        Column("day", pa.date32(), "a day"),
        Column("time", TIME, "a moment"),
        Column("yes", pa.bool_(), "a flag"),
        Column("real", pa.float64(), "a parameter"),
        Column("money", MONEY, "an amount"),
        Column("name", pa.string(), "a text"),
        Column("raw", pa.binary(), "bytes"),
        Column("counts", pa.list_(pa.int64()), "a list of counts"),
        Column("words", pa.list_(pa.string()), "a list of texts"),
        Column("absent", pa.int64(), "unknown"),
    ),
    key=("whole",),
    daily=False,
)
ROW = {
    "whole": 258,
    "small": -1,
    "day": date(1970, 1, 3),
    "time": datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC),
    "yes": True,
    "real": 1.5,
    "money": Decimal("12.340000000000000000"),
    "name": "ü",
    "raw": b"\x00\xff",
    "counts": [1, None],
    "words": ["a"],
    "absent": None,
}
# Worked out with paper: a 1 for "there is a value", then the value.
BYTES = bytes.fromhex(
    "01 0000000000000102"  # 258
    "01 ffffffffffffffff"  # -1
    "01 0000000000000002"  # two days after 1970-01-01
    "01 00000000000f4240"  # 1,000,000 microseconds
    "01 01"  # true
    "01 3ff8000000000000"  # 1.5
    "01 00000005 31322e3334"  # five bytes: 12.34
    "01 00000002 c3bc"  # two bytes of UTF-8
    "01 00000002 00ff"
    "01 00000002 01 0000000000000001 00"  # two items: 1, null
    "01 00000001 01 00000001 61"  # one item: the one byte a
    "00".replace(" ", "")  # null
)


def table(*values: dict[str, object]) -> pa.Table:
    return pa.Table.from_pylist(list(values), schema=EXAMPLE.schema())


def test_a_row_is_these_bytes() -> None:
    assert list(rows(EXAMPLE, table(ROW))) == [BYTES]


def test_a_digest_is_over_sized_rows_in_sorted_order() -> None:
    low, high = b"\x01a", b"\x01b"
    expected = hashlib.sha256(b"\x00\x00\x00\x02\x01a\x00\x00\x00\x02\x01b").hexdigest()
    assert digest([high, low]) == digest([low, high]) == expected
    assert digest([]) == hashlib.sha256(b"").hexdigest()
    assert digest([low, low]) != digest([low])


def test_rows_may_be_moved_between_batches_and_columns_reordered() -> None:
    other = ROW | {"whole": 7}
    one = table(ROW, other)
    two = pa.concat_tables([table(other), table(ROW)]).select(list(reversed(EXAMPLE.names)))
    assert digest(rows(EXAMPLE, one)) == digest(rows(EXAMPLE, two))


def test_large_arrow_types_give_the_same_bytes() -> None:
    """Polars hands over large_string, large_binary and large_list."""
    wide = table(ROW)
    for name, kind in (
        ("name", pa.large_string()),
        ("raw", pa.large_binary()),
        ("counts", pa.large_list(pa.int64())),
        ("words", pa.large_list(pa.large_string())),
    ):
        at = wide.column_names.index(name)
        wide = wide.set_column(at, name, wide.column(name).cast(kind))
    assert list(rows(EXAMPLE, wide)) == [BYTES]


@pytest.mark.parametrize("name", [column.name for column in EXAMPLE.columns if column.name != "absent"])
def test_null_differs_from_every_zero(name: str) -> None:
    zeros: dict[str, object] = {
        "whole": 0,
        "small": 0,
        "day": date(1970, 1, 1),
        "time": datetime(1970, 1, 1, tzinfo=UTC),
        "yes": False,
        "real": 0.0,
        "money": Decimal(0),
        "name": "",
        "raw": b"",
        "counts": [],
        "words": [],
    }
    assert list(rows(EXAMPLE, table(ROW | {name: zeros[name]}))) != list(rows(EXAMPLE, table(ROW | {name: None})))


@pytest.mark.parametrize(
    ("digits", "text"),
    [
        ("0", b"0"),
        ("-0", b"0"),
        ("0.000", b"0"),
        ("-0.00", b"0"),
        ("100", b"100"),
        ("1E+2", b"100"),
        ("1.50", b"1.5"),
        ("-1.50", b"-1.5"),
        ("0.000000000000000001", b"0.000000000000000001"),
        ("12345678901234567890.123456789012345678", b"12345678901234567890.123456789012345678"),
    ],
)
def test_a_decimal_has_one_form(digits: str, text: bytes) -> None:
    assert encoder(MONEY)(Decimal(digits)) == len(text).to_bytes(4, "big") + text


def test_reals_have_one_zero_and_one_nan() -> None:
    encode = encoder(pa.float64())
    assert encode(-0.0) == encode(0.0) == bytes(8)
    assert encode(float("nan")) == encode(-float("nan")) == bytes.fromhex("7ff8000000000000")


def test_a_moment_is_the_same_in_every_zone_and_before_1970() -> None:
    encode = encoder(TIME)
    moment = datetime(2026, 3, 1, 12, tzinfo=UTC)
    assert (
        encode(moment) == encode(moment.astimezone(timezone(timedelta(hours=9)))) == encode(moment.replace(tzinfo=None))
    )
    assert encode(datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)) == bytes.fromhex("ffffffffffffffff")
    assert encoder(pa.date32())(date(1969, 12, 31)) == bytes.fromhex("ffffffffffffffff")


def test_texts_cannot_slide_into_each_other() -> None:
    """Lengths stand before texts: (a, bc) is not (ab, c)."""
    pair = Table(
        "pair",
        Domain.BILLING,
        "Two texts.",
        (Column("one", pa.string(), ""), Column("two", pa.string(), "")),
        key=("one",),
        daily=False,
    )
    ab = pa.table({"one": ["a", "ab"], "two": ["bc", "c"]})
    first, second = rows(pair, ab)
    assert first != second


def test_a_missing_column_is_named_and_an_extra_one_left_out() -> None:
    data = table(ROW)
    with pytest.raises(KeyError, match=r"rows of example lack the columns money, name"):
        list(rows(EXAMPLE, data.drop_columns(["name", "money"])))
    assert list(rows(EXAMPLE, data.append_column("more", pa.array([1])))) == [BYTES]


@pytest.mark.parametrize("kind", [pa.uint64(), pa.time64("us"), pa.struct([("a", pa.int64())])])
def test_types_outside_the_vocabulary_have_no_canonical_form(kind: pa.DataType) -> None:
    with pytest.raises(TypeError, match="the vocabulary uses no such column"):
        encoder(kind)
