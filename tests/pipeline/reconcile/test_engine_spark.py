"""Spark gives the same digits; a task that fails leaves no row twice and none out; a job that fails changes nothing."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import narwhals as nw
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from tests.pipeline.reconcile.conftest import DAY, World, crowd
from tests.spark import needs_spark

from weighbridge.pipeline.lake import Lake
from weighbridge.pipeline.reconcile.engines import using
from weighbridge.pipeline.reconcile.engines.engine import Frame
from weighbridge.pipeline.reconcile.engines.on_spark import OnSpark
from weighbridge.pipeline.reconcile.engines.spark_session import LOCAL, NEEDED
from weighbridge.pipeline.reconcile.engines.sums import exact_sum
from weighbridge.pipeline.reconcile.frames import collected, frame_of
from weighbridge.pipeline.reconcile.overview.overview import overview
from weighbridge.pipeline.reconcile.reconcile import reconcile
from weighbridge.schemas.errors import SumError

pytestmark = [
    pytest.mark.spark,
    needs_spark(),
    # Spark warns of the versions of pandas and of Arrow it has not met yet; neither is used here.
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
WRITTEN = ("reconciled", "gap_cause", "finding")


@pytest.fixture(scope="module")
def session() -> Iterator[Any]:
    """A small session as it is started anywhere, but of tasks that are tried three times and that compile little.

    A few rows are computed long before code for them is compiled.
    """
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession  # noqa: PLC0415 - optional

    own = {
        "spark.master": "local[2,3]",
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    }
    builder = SparkSession.builder.appName("weighbridge-tests")
    for name, value in {**LOCAL, **own}.items():
        builder = builder.config(name, value)
    made = builder.getOrCreate()
    made.sparkContext.setLogLevel("OFF")
    yield made
    made.stop()


@dataclass(slots=True)
class Failing(OnSpark):
    """Spark whose tasks fail: each partition of the first rows it is given, so many times."""

    marks: Path = Path()
    times: int = 1
    _given: bool = False

    def frame(self, rows: pl.DataFrame | pl.LazyFrame) -> Frame:
        """The rows, the first ones by way of a task that fails."""
        given: Frame = OnSpark.frame(self, rows)
        if self._given:
            return given
        self._given = True
        native: Any = given.to_native()
        passed: Frame = nw.from_native(native.mapInArrow(failing(self.marks / "task", self.times), native.schema))
        return passed


def failing(marks: Path, times: int) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """A step that gives half of its rows and then fails, so many times in each partition."""

    def step(batches: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext  # noqa: PLC0415 - runs in a worker of Spark

        context = TaskContext.get()
        assert context is not None
        mine = marks.with_name(f"{marks.name}-{context.partitionId()}")
        tried = len(list(mine.parent.glob(f"{mine.name}.*")))
        for batch in batches:
            if tried < times:
                yield batch.slice(0, batch.num_rows // 2)
                mine.with_name(f"{mine.name}.{tried}").touch()
                raise RuntimeError("a task that was made to fail")
            yield batch

    return step


def spark_that_fails(session: Any, folder: Path, times: int) -> Failing:
    """An engine on the session of the tests."""
    marks = Path(tempfile.mkdtemp(dir=folder))
    return Failing(session, Path(tempfile.mkdtemp(dir=folder)), own=False, marks=marks, times=times)


def filled(world: World) -> World:
    """Attempts of many kinds, and prices."""
    crowd(world, 30, 5)
    world.prices()
    return world


def few(world: World) -> World:
    """One attempt that agrees, one without a report, one that was reported twice, and one that nothing explains."""
    for number in range(1, 5):
        world.attempt(number, input_computed=100, output_computed=10)
    for number, output, report in ((1, 10, 0), (3, 10, 0), (3, 10, 1), (4, 13, 0)):
        world.reading(number, input_total=100, output_total=output, report=report)
    return world


def around_midnight(world: World) -> World:
    """An attempt whose report came on the next day, in the next month, and one that has its own there."""
    last, next_day = date(2026, 3, 31), date(2026, 4, 1)
    for number, day, told in ((101, last, next_day), (102, next_day, next_day), (103, DAY, last)):
        world.attempt(number, input_computed=50, output_computed=5, day=day)
        world.reading(number, input_total=50, output_total=5, day=told)
    world.reading(104, input_total=7, output_total=1, day=next_day)
    return world


def written(lake: Lake) -> dict[str, str]:
    """The digests of what a reconciliation writes."""
    return {table: lake.digest(table) for table in WRITTEN}


def test_a_reconciliation_is_the_same(world: World, session: Any) -> None:
    """To the digest of every table that is written."""
    filled(world)
    ours, theirs = world.lake(), world.lake()
    found = reconcile(ours), reconcile(theirs, engine="spark")
    assert found[0] == found[1]
    assert written(theirs) == written(ours)
    # Nothing the two could differ in is absent.
    assert set(found[0].statuses) == {"MATCHED", "EXPLAINED", "UNEXPLAINED", "NOT_COMPARED"}


def test_the_overview_is_the_same_and_a_session_that_was_there_is_left_as_it_was(world: World, session: Any) -> None:
    """Groups, sums and percentiles."""
    lake = around_midnight(filled(world)).lake()
    session.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    before = {name: session.conf.get(name, None) for name in NEEDED}
    for month in (None, "2026-03"):
        assert_frame_equal(overview(lake, engine="spark", month=month), overview(lake, month=month))
    assert {name: session.conf.get(name, None) for name in NEEDED} == before
    assert session.range(1).count() == 1


@pytest.mark.parametrize(("values", "total"), [([2**62, 2**62 - 1], 2**63 - 1), ([2**63 - 1, 1], None)])
def test_a_sum_is_exact_or_an_error(values: list[int], total: int | None, session: Any) -> None:
    """As on the other engines."""
    with using("spark"):
        asked = frame_of(pl.DataFrame({"x": values})).select(s=exact_sum(nw.col("x")))
        if total is None:
            with pytest.raises(SumError, match=r"beyond 2\^63"):
                collected(asked)
        else:
            assert collected(asked)["s"].to_list() == [total]


def test_files_that_lack_a_column_give_nulls_and_types_come_back_as_they_went(session: Any, tmp_path: Path) -> None:
    """Every type that a table has."""
    rows = World(tmp_path)
    rows.attempt(1, input_computed=2**62, tenant=None)
    whole = rows.frame("attempt")
    whole.drop("input_computed", "day").write_parquet(tmp_path / "old.parquet")
    whole.drop("day").write_parquet(tmp_path / "new.parquet")
    columns = ["attempt_lo", "input_computed", "usage_expected", "tenant"]
    with using("spark") as made:
        files = [str(tmp_path / f"{name}.parquet") for name in ("old", "new")]
        read = made.collected(made.scan("attempt", files, columns)).sort("input_computed", nulls_last=True)
        assert read.rows() == [(1, 2**62, True, None), (1, None, True, None)]
        held = made.collected(made.kept(made.frame(whole)))
        assert_frame_equal(held, whole)


def test_a_task_that_fails_once_leaves_no_row_twice_and_none_out(session: Any, tmp_path: Path) -> None:
    """It gave half of its rows before it failed; what counts is what it gives in the end."""
    rows = pl.DataFrame({"x": range(1000)})
    made = spark_that_fails(session, tmp_path, times=1)
    with using(made):
        assert collected(frame_of(rows)).sort("x").equals(rows)
    assert len(list(made.marks.iterdir())) == 1


def test_a_job_that_fails_changes_nothing(world: World, session: Any, tmp_path: Path) -> None:
    """A task fails whenever it is tried: the lake is committed to by the driver alone, once the job has ended."""
    lake = few(world).lake()
    before = lake.digests()
    made = spark_that_fails(session, tmp_path, times=99)
    with pytest.raises(Exception, match=r"made to fail|Task|Job"):
        reconcile(lake, engine=made)
    assert list(made.marks.iterdir())
    assert lake.digests() == before


def test_a_job_that_is_repeated_after_a_failed_commit_leaves_nothing_twice_and_nothing_out(
    world: World, session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark had written its Parquet and a first table was committed; when it is repeated, a task fails once as well."""
    lake, other = few(world).lake(), world.lake()
    replace = Lake.replace

    def failing_commit(self: Lake, table: str, *given: Any, **named: Any) -> None:
        if table == "gap_cause":
            raise OSError("the store is away")
        replace(self, table, *given, **named)

    with monkeypatch.context() as away:
        away.setattr(Lake, "replace", failing_commit)
        with pytest.raises(OSError, match="the store is away"):
            reconcile(lake, engine="spark")
    assert lake.rows("reconciled") > 0
    made = spark_that_fails(session, tmp_path, times=1)
    reconcile(lake, engine=made)
    assert list(made.marks.iterdir())
    reconcile(other)
    assert written(lake) == written(other)
    assert (lake.rows("reconciled"), lake.rows("gap_cause")) == (8, 4)
