"""Numbers and times of other people's tables: read exactly, or refused with the reason."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weighbridge.pipeline.ingest import figures
from weighbridge.pipeline.ingest.moments import moments
from weighbridge.schemas.leaves import INT64_MAX, INT64_MIN

NUMBERS = st.one_of(
    st.integers(-(2**66), 2**66).map(str),
    st.decimals(allow_nan=True, allow_infinity=True, places=None).map(str),
    st.floats(allow_nan=True, allow_infinity=True).map(repr),
    st.from_regex(r"[+-]?[0-9]{1,4}(\.[0-9]{0,3})?([eE][+-]?[0-9]{1,2})?", fullmatch=True),
    st.text(max_size=6),
)


def reference(text: str) -> tuple[int | None, str | None]:
    """The same decision, value by value, made by Decimal."""
    plain = all(letter in "0123456789+-.eE" for letter in text) and any(letter.isdigit() for letter in text)
    try:
        value = Decimal(text) if plain or text.lower().lstrip("+-") in {"nan", "inf", "infinity"} else None
    except InvalidOperation:
        value = None
    if value is None:
        return None, "type"
    if not value.is_finite():
        return None, "not_a_number"
    if not INT64_MIN <= value <= INT64_MAX:
        return None, "range"
    return (None, "fraction") if value != value.to_integral_value() else (int(value), None)


@given(st.lists(NUMBERS, max_size=20))
def test_a_column_of_text_is_read_as_each_of_its_values_is(texts: list[str]) -> None:
    found = figures.integers(pl.Series("x", texts, dtype=pl.String))
    assert list(zip(found.values, found.reasons, strict=True)) == [reference(text) for text in texts]


@given(st.lists(st.one_of(st.none(), st.floats()), max_size=20))
def test_floats_are_never_rounded(values: list[float | None]) -> None:
    found = figures.integers(pl.Series("x", values, dtype=pl.Float64))
    for given_, number, reason in zip(values, found.values, found.reasons, strict=True):
        expected = (None, None) if given_ is None else reference(str(Decimal(given_)))
        assert (number, reason) == expected


@pytest.mark.parametrize(
    ("values", "kind", "numbers", "reasons"),
    [
        ([0, 2**63 - 1, 2**63], pl.UInt64, [0, 2**63 - 1, None], [None, None, "range"]),
        ([-128, 127], pl.Int8, [-128, 127], [None, None]),
        ([True, None], pl.Boolean, [None, None], ["type", None]),
        ([None, None], pl.Null, [None, None], [None, None]),
        ([Decimal("1.00"), Decimal("1.01")], pl.Decimal(10, 2), [1, None], [None, "fraction"]),
    ],
)
def test_typed_columns_are_held_to_the_same_rules(
    values: list[object], kind: type[pl.DataType], numbers: list[int | None], reasons: list[str | None]
) -> None:
    found = figures.integers(pl.Series("x", values, dtype=kind))
    assert found.values.to_list() == numbers
    assert found.values.dtype == pl.Int64
    assert found.reasons.to_list() == reasons


def test_reals_flags_and_members() -> None:
    reals = figures.reals(pl.Series(["0.5", "1e-3", "NaN", "hot", None]))
    assert reals.values.to_list() == [0.5, 0.001, None, None, None]
    assert reals.reasons.to_list() == [None, None, "not_a_number", "type", None]
    flags = figures.flags(pl.Series(["true", "FALSE", "1", "0", "yes", None]))
    assert flags.values.to_list() == [True, False, True, False, None, None]
    assert flags.reasons.to_list() == [None, None, None, None, "type", None]
    members = figures.members(pl.Series(["a", "b", None]), ["a"])
    assert members.values.to_list() == ["a", None, None]
    assert members.reasons.to_list() == [None, "type", None]


def test_measures_keep_their_digits() -> None:
    found = figures.decimals(pl.Series(["0.10", "1e-3", "5", "a lot", None, "1e9999"]))
    assert found.values.to_list() == ["0.10", "0.001", "5", None, None, None]


@given(st.datetimes(datetime(2000, 1, 2), datetime(2099, 12, 30)), st.integers(-14 * 60, 14 * 60))  # noqa: DTZ001
def test_iso_times_with_an_offset_are_the_moment_they_name(moment: datetime, minutes: int) -> None:
    sign = "-" if minutes < 0 else "+"
    text = f"{moment.isoformat()}{sign}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"
    (found,) = moments(pl.Series([text]), "iso", "Europe/Berlin").values.to_list()
    assert found == (moment - timedelta(minutes=minutes)).replace(tzinfo=UTC)


@pytest.mark.parametrize("kind", [pl.Datetime("ms"), pl.Datetime("us"), pl.Datetime("ns")])
def test_typed_times_without_a_zone_are_of_the_zone_that_was_named(kind: pl.DataType) -> None:
    column = pl.Series(["2026-07-01 12:00:00", None]).str.to_datetime().cast(kind)
    assert moments(column, "iso", "Europe/Berlin").values.to_list() == [datetime(2026, 7, 1, 10, tzinfo=UTC), None]
    zoned = column.dt.replace_time_zone("Asia/Tokyo")
    assert moments(zoned, "iso", "UTC").values.to_list() == [datetime(2026, 7, 1, 3, tzinfo=UTC), None]


def test_a_date_is_the_beginning_of_its_day() -> None:
    column = pl.Series(["2026-07-01"]).str.to_date()
    assert moments(column, "iso", "UTC").values.to_list() == [datetime(2026, 7, 1, tzinfo=UTC)]
