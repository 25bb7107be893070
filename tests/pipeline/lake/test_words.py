"""The texts of a table are read as its files hold them: each distinct one once, and a number per row."""

from __future__ import annotations

import gc
from collections import Counter
from datetime import UTC, date, datetime
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq
import pytest

from weighbridge.pipeline.lake import Lake
from weighbridge.pipeline.lake.words import Bound, bounds, files, texts
from weighbridge.schemas.errors import LakeError

FIRST, SECOND = date(2026, 1, 1), date(2026, 1, 2)


def gaps(day: date, *sources: str, segment: str | None = None) -> pl.DataFrame:
    """Gap records, one per source."""
    rows = len(sources)
    return pl.DataFrame(
        {"day": [day] * rows, "source": sources, "reason": ["quota"] * rows, "attempts": [1] * rows},
        schema_overrides={"attempts": pl.Int64},
    ).with_columns(segment=pl.lit(segment, dtype=pl.String))


def counted(lake: Lake, days: list[date | None] | None = None) -> dict[date | None, dict[str, Counter[str | None]]]:
    """Day -> column -> how often each text stands there."""
    found: dict[date | None, dict[str, Counter[str | None]]] = {}
    parts = [part for part in lake.parts("gap") if days is None or part.day in days]
    for day, columns in texts(lake, "gap", ["source", "segment"], parts):
        for name, values in columns.items():
            found.setdefault(day, {}).setdefault(name, Counter()).update(values.to_pylist())
    return found


def test_every_text_of_every_file_is_there_and_as_often(tmp_path: Path) -> None:
    lake = Lake.create(tmp_path)
    lake.append("gap", gaps(FIRST, "a", "b", "a"))
    lake.append("gap", pl.concat([gaps(FIRST, "c", segment="0" * 64), gaps(SECOND, "a")]))
    assert counted(lake) == {
        FIRST: {"source": Counter({"a": 2, "b": 1, "c": 1}), "segment": Counter({None: 3, "0" * 64: 1})},
        SECOND: {"source": Counter({"a": 1}), "segment": Counter({None: 1})},
    }
    assert list(counted(lake, [SECOND])) == [SECOND]
    assert counted(lake, []) == {}


def test_a_distinct_text_is_held_once_per_stretch(tmp_path: Path) -> None:
    lake = Lake.create(tmp_path)
    lake.append("gap", gaps(FIRST, *["a", "b"] * 500))
    ((_, columns),) = texts(lake, "gap", ["source"], lake.parts("gap"))
    assert sorted(columns["source"].dictionary.to_pylist()) == ["a", "b"]
    assert len(columns["source"]) == 1000


def test_a_table_that_is_not_kept_by_day_has_one_day_that_is_null(tmp_path: Path) -> None:
    lake = Lake.create(tmp_path)
    row = {"strategy_id": "0" * 32, "name": "dense", "family": "dense", "token_events": False, "parameters": "{}"}
    lake.append("strategy", pl.DataFrame([row]))
    found = texts(lake, "strategy", ["name"], lake.parts("strategy"))
    assert [(day, columns["name"].to_pylist()) for day, columns in found] == [(None, ["dense"])]


def test_a_file_that_is_no_longer_there_is_said_and_not_passed_over(tmp_path: Path) -> None:
    lake = Lake.create(tmp_path)
    lake.append("gap", gaps(FIRST, "a"))
    next(tmp_path.rglob("*.parquet")).unlink()
    with pytest.raises(LakeError, match="reading gap"):
        list(texts(lake, "gap", ["source"], lake.parts("gap")))


def test_the_files_of_a_table_come_in_order_of_day(tmp_path: Path) -> None:
    lake = Lake.create(tmp_path)
    assert lake.parts("gap") == []
    lake.append("gap", gaps(SECOND, "a", "b"))
    lake.append("gap", gaps(FIRST, "c"))
    assert [(part.day, part.rows) for part in lake.parts("gap")] == [(FIRST, 1), (SECOND, 2)]
    assert all(Path(part.address).is_file() for part in lake.parts("gap"))


def test_the_footer_of_a_file_says_the_bounds_of_its_whole_numbers(tmp_path: Path) -> None:
    lake = Lake.create(tmp_path)
    moments = pl.Series([datetime(2026, 1, 1, 7, tzinfo=UTC), None])
    made = gaps(FIRST, "a", "b").with_columns(attempts=pl.Series([7, 3]), tokens=pl.Series([None, 9]), began_at=moments)
    lake.append("gap", made)
    (part,) = lake.parts("gap")
    said = bounds(lake, part)
    assert (said["attempts"], said["tokens"]) == (Bound(3, 7, 0), Bound(9, 9, 1))
    assert said["attempt_lo"] == Bound(None, None, 2), "a column without a value has no least one"
    assert said["began_at"] == Bound(moments[0], moments[0], 1)
    assert "source" not in said, "a text has no bounds"


def test_a_footer_that_does_not_say_it_says_nothing(tmp_path: Path) -> None:
    lake = Lake.create(tmp_path)
    lake.append("gap", gaps(FIRST, "a"))
    (part,) = lake.parts("gap")
    pq.write_table(pq.read_table(part.address, partitioning=None), part.address, write_statistics=False)
    assert bounds(lake, part) == {}


def test_a_column_that_is_newer_than_a_file_is_null_in_its_rows(tmp_path: Path) -> None:
    lake = Lake.create(tmp_path)
    lake.append("gap", gaps(FIRST, "a"))
    (part,) = lake.parts("gap")
    pl.read_parquet(part.address, hive_partitioning=False).drop("tokens").write_parquet(part.address)
    ((_, rows),) = files("gap", [part])
    assert rows.select("day", "source", "tokens").collect().rows() == [(FIRST, "a", None)]
    pl.read_parquet(part.address, hive_partitioning=False).drop("segment").write_parquet(part.address)
    ((_, columns),) = texts(lake, "gap", ["reason", "segment"], [part])
    assert {name: values.to_pylist() for name, values in columns.items()} == {"reason": ["quota"], "segment": [None]}
    ((_, columns),) = texts(lake, "gap", ["segment"], [part])
    assert columns["segment"].to_pylist() == [None]


@pytest.mark.parametrize("name", ["a b", "a[1]*", "ä?"])
def test_a_folder_may_have_any_name(tmp_path: Path, name: str) -> None:
    lake = Lake.create(tmp_path / name)
    lake.append("gap", gaps(FIRST, "a"))
    ((_, rows),) = files("gap", lake.parts("gap"))
    assert rows.select("source").collect()["source"].to_list() == ["a"]
    assert counted(lake)[FIRST]["source"] == Counter({"a": 1})
    assert bounds(lake, lake.parts("gap")[0])["attempts"] == Bound(1, 1, 0)


def test_footers_are_not_left_for_the_collector_of_cycles(tmp_path: Path) -> None:
    """A lake has one for each file of each day, and nobody looks for cycles while they are read."""
    lake = Lake.create(tmp_path)
    lake.append("gap", gaps(FIRST, "a", "b"))
    (part,) = lake.parts("gap")
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        assert bounds(lake, part)
        assert list(texts(lake, "gap", ["source"], [part]))
        gc.collect()
        left = [each for each in gc.garbage if isinstance(each, pq.FileMetaData)]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    assert left == []
