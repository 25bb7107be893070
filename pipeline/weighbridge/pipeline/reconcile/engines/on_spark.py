"""Frames that Spark computes, on the cluster its session belongs to: a list of files in, plain Parquet out.

Executors need nothing of ours: the functions become Spark's own expressions on the driver. What comes out is written as
plain Parquet by Spark's own committer, which shows the files of tasks that ended and no others, and is believed only
once the whole job has ended (`_SUCCESS`); the lake is committed to by the driver alone.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import narwhals as nw
import polars as pl

from weighbridge.pipeline.reconcile.engines.columns import with_columns_of
from weighbridge.pipeline.reconcile.engines.engine import SPARK, Frame
from weighbridge.pipeline.reconcile.engines.sums import told_of_sums
from weighbridge.schemas.errors import ConfigError, LakeError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Where exchanged files lie: a folder that driver and executors both see. Left out, a temporary one of this host.
EXCHANGE = "WEIGHBRIDGE_SPARK_EXCHANGE"
DONE = "_SUCCESS"


@dataclass(slots=True)
class OnSpark:
    """One session. What is exchanged with it lies in a folder that is removed when the engine is closed.

    Attributes:
        session: the session; it is stopped with the engine only if the engine started it.
        folder: where files are exchanged; local to driver and executors, or shared between them.
        own: whether the session was started here.
    """

    session: SparkSession
    folder: Path
    own: bool = True
    name: str = SPARK
    _count: int = 0

    def frame(self, rows: pl.DataFrame | pl.LazyFrame) -> Frame:
        """The rows by way of a Parquet file: executors read it themselves, and no row goes through Python there."""
        held = rows.lazy().collect(engine="streaming")
        path = self._next() / "rows.parquet"
        path.parent.mkdir(parents=True)
        held.write_parquet(path)
        return nw.from_native(self.session.read.parquet(str(path)))

    def scan(self, table: str, files: Sequence[str], columns: Sequence[str]) -> Frame:
        """The files, with columns that are newer than they as nulls."""
        paths = [_address(address) for address in files]
        reader = self.session.read.option("mergeSchema", "true" if len(paths) > 1 else "false")
        return with_columns_of(table, nw.from_native(reader.parquet(*paths)), columns)

    def kept(self, frame: Frame) -> Frame:
        """The rows as Parquet, computed once: a lost executor does not take them along."""
        return nw.from_native(self.session.read.parquet(str(self.written(frame))))

    def collected(self, frame: Frame) -> pl.DataFrame:
        """The rows, by way of Parquet, never through the driver's sockets."""
        folder = self.written(frame)
        files = sorted(folder.glob("*.parquet"))
        return _utc(pl.concat([pl.read_parquet(file) for file in files], how="vertical"))

    def written(self, frame: Frame) -> Path:
        """The rows as plain Parquet in a folder of their own.

        Raises:
            LakeError: the job did not end as a whole; what some of its tasks wrote is never read.
        """
        folder = self._next()
        native: Any = frame.to_native()
        with told_of_sums():
            native.write.mode("errorifexists").parquet(str(folder))
        if not (folder / DONE).exists():
            raise LakeError(f"the Spark job that writes {folder.name} did not end as a whole; run it again")
        return folder

    def close(self) -> None:
        """Stop what was started here, and remove what was exchanged."""
        if self.own:
            self.session.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _next(self) -> Path:
        self._count += 1
        return self.folder / f"exchange-{self._count:05d}"


def engine() -> OnSpark:
    """The session that is active or that the environment describes (`SPARK_REMOTE`, `spark-defaults.conf`).

    Raises:
        ConfigError: no session can be had.
    """
    from pyspark.sql import SparkSession  # noqa: PLC0415 - an optional package

    active = SparkSession.getActiveSession()
    try:
        session = active or (
            SparkSession.builder.appName("weighbridge")
            .config("spark.sql.session.timeZone", "UTC")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .getOrCreate()
        )
    except Exception as error:  # noqa: BLE001 - whatever keeps a JVM from starting
        raise ConfigError(
            f"no Spark session can be had ({type(error).__name__}): Java 17 is needed, and JAVA_HOME where it "
            "is not on the path; for a cluster see docs/scaling.md, or choose the engine polars"
        ) from None
    session.conf.set("spark.sql.ansi.enabled", "true")
    base = os.environ.get(EXCHANGE)
    folder = Path(tempfile.mkdtemp(prefix="weighbridge-spark-", dir=base))
    return OnSpark(session, folder, own=active is None)


def _address(address: str) -> str:
    """An address as Hadoop's file systems name it."""
    return address.replace("s3://", "s3a://", 1) if address.startswith("s3://") else address


def _utc(rows: pl.DataFrame) -> pl.DataFrame:
    """Times in the zone they are in everywhere else."""
    times = [name for name, kind in rows.schema.items() if isinstance(kind, pl.Datetime)]
    return rows.with_columns(pl.col(name).cast(pl.Datetime("us", "UTC")) for name in times) if times else rows
