"""Spark gives the same digits; a task that fails leaves no row twice and none out; a job that fails changes nothing."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import narwhals as nw
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from tests.pipeline.reconcile.conftest import World, crowd

from weighbridge.pipeline.reconcile.engines import using
from weighbridge.pipeline.reconcile.engines.engine import Frame
from weighbridge.pipeline.reconcile.engines.on_spark import OnSpark, engine
from weighbridge.pipeline.reconcile.engines.sums import exact_sum
from weighbridge.pipeline.reconcile.frames import collected, frame_of
from weighbridge.pipeline.reconcile.overview.overview import overview
from weighbridge.pipeline.reconcile.reconcile import reconcile
from weighbridge.schemas.errors import SumError

_JAVA = shutil.which("java") or (Path(os.environ.get("JAVA_HOME", "/nowhere")) / "bin" / "java").is_file()
pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(importlib.util.find_spec("pyspark") is None, reason="pyspark is not installed (extra `spark`)"),
    pytest.mark.skipif(not _JAVA, reason="there is no Java: Spark needs Java 17"),
    # Spark warns of the versions of pandas and of Arrow it has not met yet; neither is used here.
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
WRITTEN = ("reconciled", "gap_cause", "finding")


@pytest.fixture(scope="module")
def session() -> Iterator[Any]:
    """Two threads that try a task three times."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession  # noqa: PLC0415 - optional

    builder = SparkSession.builder.master("local[2,3]").config("spark.sql.session.timeZone", "UTC")
    made = (
        builder.config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    made.sparkContext.setLogLevel("OFF")
    yield made
    made.stop()


@dataclass(slots=True)
class Failing(OnSpark):
    """Spark whose tasks fail: each partition of what it is given, so many times."""

    marks: Path = Path()
    times: int = 1

    def frame(self, rows: pl.DataFrame | pl.LazyFrame) -> Frame:
        """The rows by way of a task that fails."""
        native: Any = OnSpark.frame(self, rows).to_native()
        self._count += 1
        passed = native.mapInArrow(failing(self.marks / f"{self._count}", self.times), native.schema)
        frame: Frame = nw.from_native(passed)
        return frame


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
    """A few attempts of many kinds, and prices."""
    crowd(world, 12, 5)
    world.prices()
    return world


def test_a_reconciliation_and_the_overview_are_the_same(world: World, session: Any) -> None:
    """To the digest of every table that is written."""
    filled(world)
    ours, theirs = world.lake(), world.lake()
    assert_frame_equal(overview(theirs, engine="spark"), overview(ours))
    found = reconcile(ours), reconcile(theirs, engine="spark")
    assert found[0] == found[1]
    assert {table: theirs.digest(table) for table in WRITTEN} == {table: ours.digest(table) for table in WRITTEN}
    assert session.range(1).count() == 1  # a session that was there before is left alone


@pytest.mark.parametrize(("values", "total"), [([2**62, 2**62 - 1], 2**63 - 1), ([2**63 - 1, 1], None)])
def test_a_sum_is_exact_or_an_error(values: list[int], total: int | None, session: Any) -> None:
    """As on the other engines."""
    with using(engine()):
        asked = frame_of(pl.DataFrame({"x": values})).select(s=exact_sum(nw.col("x")))
        if total is None:
            with pytest.raises(SumError, match=r"beyond 2\^63"):
                collected(asked)
        else:
            assert collected(asked)["s"].to_list() == [total]


def test_a_task_that_fails_once_leaves_no_row_twice_and_none_out(session: Any, tmp_path: Path) -> None:
    """It gave half of its rows before it failed; what counts is what it gives in the end."""
    rows = pl.DataFrame({"x": range(1000)})
    made = spark_that_fails(session, tmp_path, times=1)
    with using(made):
        assert collected(frame_of(rows)).sort("x").equals(rows)
    assert list(made.marks.iterdir())


def test_a_job_that_fails_changes_nothing_and_the_next_one_finishes_it(
    world: World, session: Any, tmp_path: Path
) -> None:
    """The lake is committed to by the driver alone, a day as a whole."""
    lake, other = filled(world).lake(), world.lake()
    before = lake.digests()
    with pytest.raises(Exception, match=r"made to fail|Task|Job"):
        reconcile(lake, engine=spark_that_fails(session, tmp_path, times=99))
    assert lake.digests() == before
    reconcile(lake, engine="polars")
    reconcile(other)
    assert {table: lake.digest(table) for table in WRITTEN} == {table: other.digest(table) for table in WRITTEN}
