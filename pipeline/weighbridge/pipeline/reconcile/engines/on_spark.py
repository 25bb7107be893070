"""Frames that Spark computes, on the cluster its session belongs to: a list of files in, plain Parquet out.

Executors need nothing of ours: the functions become Spark's own expressions on the driver. What comes out is written as
plain Parquet by Spark's own committer, which shows the files of tasks that ended and no others, and is believed only
once the whole job has ended (`_SUCCESS`); the lake is committed to by the driver alone.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import narwhals as nw
import polars as pl

from weighbridge.pipeline.lake.shape import polars_schema
from weighbridge.pipeline.reconcile.engines.engine import SPARK, Frame
from weighbridge.pipeline.reconcile.engines.spark_session import as_before, as_needed, session
from weighbridge.pipeline.reconcile.engines.sums import told_of_sums
from weighbridge.schemas.errors import LakeError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Where exchanged files lie: a folder that driver and executors both see. Left out, a temporary one of this host.
EXCHANGE = "WEIGHBRIDGE_SPARK_EXCHANGE"
DONE = "_SUCCESS"
# Types by Spark's own words for them. A schema that is told saves the job that would look for it in the files.
_WORDS: Mapping[pl.DataType, str] = {
    pl.String(): "STRING",
    pl.Int64(): "BIGINT",
    pl.Int32(): "INT",
    pl.Boolean(): "BOOLEAN",
    pl.Float64(): "DOUBLE",
    pl.Date(): "DATE",
    pl.Datetime("us", "UTC"): "TIMESTAMP",
    pl.Decimal(38, 18): "DECIMAL(38,18)",
    pl.List(pl.String()): "ARRAY<STRING>",
    pl.List(pl.Int64()): "ARRAY<BIGINT>",
}


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
    _before: dict[str, str | None] = field(init=False)

    def __post_init__(self) -> None:
        self._before = as_needed(self.session)

    def frame(self, rows: pl.DataFrame | pl.LazyFrame) -> Frame:
        """The rows by way of a Parquet file: executors read it themselves, and no row goes through Python there."""
        held = rows.lazy().collect(engine="streaming")
        path = self._next() / "rows.parquet"
        path.parent.mkdir(parents=True)
        held = held.with_columns(pl.selectors.by_dtype(pl.Null).cast(pl.String))
        held.write_parquet(path)
        told = spark_schema(held.schema)
        reader = self.session.read if told is None else self.session.read.schema(told)
        read: Frame = nw.from_native(reader.parquet(str(path)))
        return read

    def scan(self, table: str, files: Sequence[str], columns: Sequence[str]) -> Frame:
        """The files, with columns that are newer than they as nulls: that is how Spark reads a schema it is told."""
        types = polars_schema(table)
        told = spark_schema({name: types[name] for name in columns})
        assert told is not None  # every type of a table is among them
        addresses = [_address(file) for file in files]
        reader = self.session.read.schema(told)
        if "day" in columns:
            reader = reader.option("basePath", addresses[0].rpartition("/day=")[0])
        read: Frame = nw.from_native(reader.parquet(*addresses))
        return read.select(*columns)

    def kept(self, frame: Frame) -> Frame:
        """The rows as Parquet, computed once: a lost executor does not take them along."""
        native: Any = frame.to_native()
        read: Frame = nw.from_native(self.session.read.schema(native.schema).parquet(str(self.written(frame))))
        return read

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
        """Stop what was started here, leave any other session as it was, and remove what was exchanged."""
        if self.own:
            self.session.stop()
        else:
            as_before(self.session, self._before)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _next(self) -> Path:
        self._count += 1
        return self.folder / f"exchange-{self._count:05d}"


def engine() -> OnSpark:
    """The session that is active, or that the environment describes, or a small one of this host.

    Raises:
        ConfigError: no session can be had.
    """
    made, own = session()
    folder = Path(tempfile.mkdtemp(prefix="weighbridge-spark-", dir=os.environ.get(EXCHANGE)))
    return OnSpark(made, folder, own=own)


def spark_schema(types: Mapping[str, pl.DataType]) -> str | None:
    """Columns and their types as Spark reads them; null where it has to look for itself."""
    if any(kind not in _WORDS for kind in types.values()):
        return None
    return ", ".join(f"`{name}` {_WORDS[kind]}" for name, kind in types.items())


def _address(address: str) -> str:
    """An address as Hadoop's file systems name it."""
    return address.replace("s3://", "s3a://", 1) if address.startswith("s3://") else address


def _utc(rows: pl.DataFrame) -> pl.DataFrame:
    """Times in the zone they are in everywhere else."""
    times = [name for name, kind in rows.schema.items() if isinstance(kind, pl.Datetime)]
    return rows.with_columns(pl.col(name).cast(pl.Datetime("us", "UTC")) for name in times) if times else rows
