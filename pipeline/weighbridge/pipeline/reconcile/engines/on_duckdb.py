"""Frames that DuckDB computes in this process: it needs less memory, and spills where that is too much."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any

import narwhals as nw
import polars as pl

from weighbridge.pipeline.reconcile.engines.columns import with_columns_of
from weighbridge.pipeline.reconcile.engines.engine import DUCKDB, Frame
from weighbridge.pipeline.reconcile.engines.sums import told_of_sums

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_NUMBERS = count()


@dataclass(slots=True)
class OnDuckdb:
    """A connection in memory. What was kept there is given up with the engine."""

    connection: DuckDBPyConnection
    name: str = DUCKDB
    _kept: list[str] = field(default_factory=list)

    def frame(self, rows: pl.DataFrame | pl.LazyFrame) -> Frame:
        """The rows as Arrow, which DuckDB reads where they lie."""
        held = rows.lazy().collect(engine="streaming").to_arrow(compat_level=pl.CompatLevel.oldest())
        return nw.from_native(self.connection.from_arrow(held))

    def scan(self, table: str, files: Sequence[str], columns: Sequence[str]) -> Frame:
        """The files, with columns that are newer than they as nulls."""
        paths = [address.removeprefix("file://") for address in files]
        dated = "day" in columns
        held = self.connection.read_parquet(paths, hive_partitioning=dated, union_by_name=len(paths) > 1)
        return with_columns_of(table, nw.from_native(held), columns)

    def kept(self, frame: Frame) -> Frame:
        """The rows in a table of their own, until the engine is closed."""
        name = f"weighbridge_kept_{next(_NUMBERS)}"
        relation: Any = frame.to_native()
        with told_of_sums():
            relation.create(name)
        self._kept.append(name)
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
        for name in self._kept:
            self.connection.execute(f"DROP TABLE IF EXISTS {name}")
        self._kept.clear()


def engine() -> OnDuckdb:
    """The connection of this process, with as many threads as Polars has.

    Narwhals computes some functions on that one whatever relation it is given, and relations of two do not mix.
    """
    import duckdb  # noqa: PLC0415 - an optional package

    connection = duckdb.default_connection()
    connection.execute(f"SET threads = {pl.thread_pool_size()}")
    return OnDuckdb(connection)
