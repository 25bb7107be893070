"""A file says how its rows are ordered, because its writer looked; of any other file the column itself is read."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import polars as pl
import pytest
from deltalake import write_deltalake

from weighbridge.pipeline.lake import Lake, empty, polars_schema
from weighbridge.pipeline.lake.files import Part
from weighbridge.pipeline.lake.footer import footer
from weighbridge.pipeline.lake.order import Order, order_of
from weighbridge.schemas.tables import TABLES

DAY = date(2026, 3, 1)
ATTEMPT = TABLES["attempt"]


def rows(keys: list[int], source: str = "agent") -> pl.DataFrame:
    """Attempts with these second halves of keys."""
    common = {"source": source, "revision": 0, "status": "succeeded", "tenant": "unassigned", "task": "unassigned"}
    named = [
        {**common, "attempt_lo": lo, "attempt_hi": 7, "day": DAY, "route": "unassigned", "segment": "a" * 64}
        for lo in keys
    ]
    frame = pl.DataFrame(named, schema_overrides={n: t for n, t in polars_schema("attempt").items() if n in named[0]})
    return frame.with_columns(segment_row=pl.int_range(pl.len(), dtype=pl.Int64))


@pytest.mark.parametrize(
    ("values", "order"),
    [
        ([], Order.STRICT),
        ([5], Order.STRICT),
        ([-(2**63), -1, 0, 2**63 - 1], Order.STRICT),
        ([1, 1, 2], Order.RISING),
        ([2, 1], Order.NONE),
        ([2**63 - 1, -(2**63)], Order.NONE),
        ([1, None, 2], Order.NONE),
    ],
)
def test_order_is_that_of_signed_numbers(values: list[int | None], order: Order) -> None:
    """The least and the greatest number have no difference that fits, and are compared all the same."""
    assert order_of(pl.Series(values, dtype=pl.Int64)) is order


def checked(part: Part) -> Order:
    """The order of the rows of a file as they lie in it."""
    return order_of(pl.read_parquet(part.address, hive_partitioning=False)["attempt_lo"])


@pytest.mark.parametrize(("keys", "order"), [([3, -1, 2], Order.STRICT), ([3, 3, -1], Order.RISING)])
def test_a_commit_notes_the_order_of_each_file(tmp_path: Path, keys: list[int], order: Order) -> None:
    """Rows come in any order and are stored by key; one key twice is no strict order."""
    lake = Lake.create(tmp_path)
    shown = pl.concat([rows([key], f"s{place}") for place, key in enumerate(keys)])
    lake.append("attempt", shown)
    (part,) = lake.parts("attempt")
    said = footer(lake.place, ATTEMPT, part)
    assert said.order is order is checked(part)
    assert [(each.first, each.rows, each.least, each.most) for each in said.stretches] == [(0, 3, -1, 3)]


def test_merged_runs_are_one_run(tmp_path: Path) -> None:
    """Every commit adds a file; after merging, one file holds the rows of all, in order."""
    lake = Lake.create(tmp_path)
    for keys in ([5, 1], [4, 2], [3, 6]):
        lake.append("attempt", rows(keys))
    assert len(lake.parts("attempt")) == 3
    assert lake.compact("attempt", runs=4) == 0
    assert lake.compact("attempt", runs=3) == 1
    (part,) = lake.parts("attempt")
    assert footer(lake.place, ATTEMPT, part).order is Order.STRICT
    assert lake.scan("attempt", columns=["attempt_lo"]).collect()["attempt_lo"].to_list() == [1, 2, 3, 4, 5, 6]


def test_a_file_of_another_writer_says_nothing(tmp_path: Path) -> None:
    """Whatever order its rows are in: nobody checked it."""
    lake = Lake.create(tmp_path)
    lake.append("attempt", rows([1]))
    strange = pl.concat([empty("attempt"), rows([9, 2])], how="diagonal").select(list(polars_schema("attempt")))
    write_deltalake(lake.place.at("billing", "attempt"), strange.to_arrow(), mode="append")
    said = {footer(lake.place, ATTEMPT, part).order: checked(part) for part in lake.parts("attempt")}
    assert said == {Order.STRICT: Order.STRICT, None: Order.NONE}


def test_a_mark_about_another_column_is_no_mark(tmp_path: Path) -> None:
    """What a file was sorted by is part of what it says."""
    lake = Lake.create(tmp_path)
    lake.append("attempt", rows([1, 2]))
    (part,) = lake.parts("attempt")
    path = part.address
    pl.read_parquet(path, hive_partitioning=False).write_parquet(path, metadata={"weighbridge.order": "day strict"})
    assert footer(lake.place, ATTEMPT, part).order is None
