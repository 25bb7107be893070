"""Repeated keys: found across files, days and buckets; the first one by day, file and line is the one that counts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.pipeline.validate.conftest import DAY, Row, Rows, clean, frame

from weighbridge.pipeline.lake import Lake
from weighbridge.pipeline.validate import keys as keys_module
from weighbridge.pipeline.validate.keys import repeated

LATER = DAY + timedelta(days=1)


def again(lake: Lake, table: str = "attempt", days: Sequence[date | None] = (DAY,)) -> list[tuple[Any, ...]]:
    """Day and line of each row whose key another row had first."""
    found = repeated(lake, table, days, lake.parts(table))
    return found.select(name for name in ("day", "segment_row") if name in found.columns).sort(pl.all()).rows()


def attempt(number: int, key: int, day: date = DAY, **changes: Any) -> Row:
    return clean("attempt", number, day, attempt_hi=key, attempt_lo=key, **changes)


def test_the_same_key_in_one_file(rows: Rows) -> None:
    rows.put("attempt", attempt(1, 7), attempt(2, 8), attempt(3, 7), attempt(4, 7))
    assert again(rows.lake) == [(DAY, 3), (DAY, 4)]


def test_the_same_key_in_two_files_of_a_day(rows: Rows) -> None:
    rows.put("attempt", attempt(5, 7), attempt(6, 8))
    rows.put("attempt", attempt(1, 7, segment="b" * 64), attempt(2, 9, segment="b" * 64))
    assert again(rows.lake) == [(DAY, 1)], "the file whose digest comes later has the row too many"


@pytest.mark.parametrize(("looked", "found"), [([DAY], []), ([LATER], [(LATER, 1)]), ([DAY, LATER], [(LATER, 1)])])
def test_the_same_key_on_two_days_is_too_many_on_the_later(
    rows: Rows, looked: list[date], found: list[tuple[date, int]]
) -> None:
    rows.put("attempt", attempt(3, 7), attempt(4, 8))
    rows.put("attempt", attempt(1, 7, LATER), attempt(2, 9, LATER))
    assert again(rows.lake, days=looked) == found


@pytest.mark.parametrize("change", [{"source": "other"}, {"revision": 2}, {"attempt_hi": 70}])
def test_a_key_that_differs_in_any_part_is_another(rows: Rows, change: Row) -> None:
    rows.put("attempt", attempt(1, 7), attempt(2, 7) | change)
    assert again(rows.lake) == []


def test_unknown_parts_of_a_key_are_alike(rows: Rows) -> None:
    """Two losses of the same hour by the same agent, from the same row of the same file, are one row twice."""
    gap = clean("gap", 1, attempt_lo=None, attempt_hi=None, began_at=None)
    rows.put("gap", gap, gap, clean("gap", 2, attempt_lo=None, attempt_hi=None, began_at=None))
    assert again(rows.lake, "gap") == [(DAY, 1)]


def test_a_key_of_texts_in_a_table_without_days(rows: Rows) -> None:
    rows.put("price", clean("price", 1, price_id="0" * 32), clean("price", 2, price_id="0" * 32))
    found = repeated(rows.lake, "price", [None], rows.lake.parts("price"))
    assert found.height == 1


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    keys=st.lists(st.tuples(st.integers(-5, 5), st.integers(-5, 5), st.booleans()), max_size=40),
    at_once=st.integers(1, 9),
)
def test_any_number_of_passes_finds_what_one_look_finds(
    keys: list[tuple[int, int, bool]], at_once: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    rows = [
        clean("attempt", number, LATER if later else DAY, attempt_hi=hi, attempt_lo=lo)
        for number, (hi, lo, later) in enumerate(keys)
    ]
    lake = Lake.create(tmp_path_factory.mktemp("lake"))
    lake.append("attempt", frame("attempt", rows)) if rows else None
    seen: set[tuple[int, int]] = set()
    expected = []
    for number, (hi, lo, later) in sorted(enumerate(keys), key=lambda item: (item[1][2], item[0])):
        if (hi, lo) in seen:
            expected.append((LATER if later else DAY, number))
        seen.add((hi, lo))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(keys_module, "AT_ONCE", at_once)
        assert again(lake, days=[DAY, LATER]) == sorted(expected)
