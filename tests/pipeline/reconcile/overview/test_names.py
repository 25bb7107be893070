"""Tenant and model of each attempt as one number, from the dictionaries of its file."""

from __future__ import annotations

import gc
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq
import pytest

from weighbridge.pipeline.lake.files import Part
from weighbridge.pipeline.lake.footer import footer
from weighbridge.pipeline.lake.place import Place
from weighbridge.pipeline.reconcile.overview import names as place_of_names
from weighbridge.pipeline.reconcile.overview.names import Names
from weighbridge.schemas.tables import TABLES

ROWS = pl.DataFrame(
    {
        "tenant": ["t_1", None, "t_2", "t_1", "t_2", "t_1"],
        "model_served": ["a", "a", None, None, "b", None],
        "model_requested": ["z", "a", "b", None, None, "a"],
        "messages": [1, 1, 1, 1, 1, 1],
    }
)
# What the rows are called: the served model, else the one asked for; nothing where either name is missing.
CALLED = [("t_1", "a"), None, ("t_2", "b"), None, ("t_2", "b"), ("t_1", "a")]


def told(
    names: Names, rows: pl.DataFrame, path: Path, groups: list[int], absent: frozenset[str] = frozenset()
) -> list[tuple[str | None, str | None] | None]:
    """The names of each row, by way of its number."""
    rows.write_parquet(path, row_group_size=4)
    numbers = names.of_rows(Place(str(path.parent)), Part(None, rows.height, str(path)), groups, absent)
    return [None if number is None else names.pairs[number] for number in numbers.to_list()]


def test_a_number_stands_for_both_names(tmp_path: Path) -> None:
    """Over row groups and files with other dictionaries; equal names have one number."""
    names = Names()
    assert told(names, ROWS, tmp_path / "a.parquet", [0, 1]) == CALLED
    assert told(names, ROWS.reverse(), tmp_path / "b.parquet", [0, 1]) == CALLED[::-1]
    assert told(names, ROWS, tmp_path / "a.parquet", [1]) == CALLED[4:]
    assert sorted(names.pairs) == [("t_1", "a"), ("t_2", "b")]


@pytest.mark.parametrize("gone", [("model_requested",), ("tenant",), ("model_served", "model_requested", "tenant")])
def test_columns_that_are_null_need_not_be_read(gone: tuple[str, ...], tmp_path: Path) -> None:
    """They are left out by the file, by the reader, or read as nulls: the numbers are the same."""
    bare = ROWS.with_columns(pl.lit(None, pl.String).alias(name) for name in gone)
    model = [served or asked for served, asked in bare.select("model_served", "model_requested").iter_rows()]
    expected = [(t, m) if t and m else None for t, m in zip(bare["tenant"], model, strict=True)]
    for place, (rows, absent) in enumerate(
        [(bare, frozenset()), (bare, frozenset(gone)), (bare.drop(gone), frozenset())]
    ):
        assert told(Names(), rows, tmp_path / f"{place}.parquet", [0, 1], absent) == expected


def test_many_names_make_room(tmp_path: Path) -> None:
    """A hundred tenants with twenty models each."""
    rows = pl.DataFrame(
        {"tenant": [f"t_{n // 20}" for n in range(2000)], "model_served": [f"m{n % 20}" for n in range(2000)]}
    )
    names = Names()
    assert told(names, rows, tmp_path / "a.parquet", list(range(500))) == list(rows.iter_rows())
    assert len(names.pairs) == 2000


def test_tenants_with_models_of_their_own_take_no_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three thousand pairs would have a table of thirty-six million places; row by row they are the same pairs."""
    own = [(f"t_{n}", f"m{n}") for n in range(3000)]
    pairs = [*own, *own[::-1], (None, "m1"), ("t_1", None)]
    rows = pl.DataFrame(pairs, schema=["tenant", "model_served"], orient="row")
    expected = [*own, *own[::-1], None, None]
    names = Names()
    assert told(names, rows, tmp_path / "a.parquet", list(range(1501))) == expected
    assert (names._table, len(names.pairs)) == (None, 3000)
    assert told(names, rows.reverse(), tmp_path / "b.parquet", list(range(1501))) == expected[::-1]
    monkeypatch.setattr(place_of_names, "MOST_PLACES", 1)
    assert told(Names(), ROWS, tmp_path / "c.parquet", [0, 1]) == CALLED


def test_a_footer_is_not_left_for_the_collector_of_cycles(tmp_path: Path) -> None:
    """One was, for each stretch of a day: megabytes, as pyarrow's footer and its schema refer to one another."""
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        told(Names(), ROWS, tmp_path / "a.parquet", [0, 1])
        part = Part(None, ROWS.height, str(tmp_path / "a.parquet"))
        assert len(footer(Place(str(tmp_path)), TABLES["attempt"], part, ["tenant"]).stretches) == 2
        gc.collect()
        left = [each for each in gc.garbage if isinstance(each, pq.FileMetaData)]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    assert left == []
