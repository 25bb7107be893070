"""Frames that DuckDB computes in this process: it needs less memory than Polars, and spills where even that is too much."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any

import narwhals as nw
import polars as pl
import pyarrow as pa

from weighbridge.pipeline.lake.shape import polars_schema
from weighbridge.pipeline.reconcile.engines.engine import DUCKDB, Frame
from weighbridge.pipeline.reconcile.engines.sums import told_of_sums

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


@dataclass(slots=True)
class OnDuckdb:
    """One connection in memory, which lasts as long as the engine."""

    connection: DuckDBPyConnection
    name: str = DUCKDB
    _numbers: Any = field(default_factory=count)

    def frame(self, rows: pl.DataFrame | pl.LazyFrame) -> Frame:
        """The rows as Arrow, which DuckDB reads where they lie."""
        held = rows.lazy().collect(engine="streaming").to_arrow(compat_level=pl.CompatLevel.oldest())
        return nw.from_native(self.connection.from_arrow(_plain(held)))

    def scan(self, table: str, files: Sequence[str], columns: Sequence[str]) -> Frame:
        """The files, with columns that are newer than they as nulls."""
        paths = [address.removeprefix("file://") for address in files]
        held = self.connection.read_parquet(paths, hive_partitioning=False, union_by_name=len(paths) > 1)
        types = polars_schema(table)
        known = nw.from_native(held)
        stored = set(known.collect_schema().names())
        nulls = {n: nw.lit(None, dtype=_TYPES[types[n]]) for n in columns if n not in stored}
        return known.with_columns(**nulls).select(*columns) if nulls else known.select(*columns)

    def kept(self, frame: Frame) -> Frame:
        """The rows in a table of their own, until the engine is closed."""
        name = f"kept_{next(self._numbers)}"
        relation: Any = frame.to_native()
        with told_of_sums():
            relation.create(name)
        return nw.from_native(self.connection.table(name))

    def collected(self, frame: Frame) -> pl.DataFrame:
        """The rows, by way of Arrow."""
        with told_of_sums():
            relation: Any = frame.to_native()
            rows = pl.from_arrow(relation.to_arrow_table())
        assert isinstance(rows, pl.DataFrame)
        return rows

    def close(self) -> None:
        """Give the memory back."""
        self.connection.close()


_TYPES: dict[pl.DataType, Any] = {
    pl.String(): nw.String,
    pl.Int64(): nw.Int64,
    pl.Int32(): nw.Int32,
    pl.Boolean(): nw.Boolean,
    pl.Float64(): nw.Float64,
    pl.Date(): nw.Date,
}


def _plain(rows: pa.Table) -> pa.Table:
    """Columns without a type hold nothing: DuckDB would take them for numbers."""
    return rows


def engine() -> OnDuckdb:
    """A new connection, with as many threads as Polars has."""
    import duckdb  # noqa: PLC0415 - an optional package

    connection = duckdb.connect(config={"threads": pl.thread_pool_size()})
    return OnDuckdb(connection)
