"""Frames that DuckDB computes in this process: it needs less memory, and spills where that is too much."""

from __future__ import annotations

import atexit
import os
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from typing import TYPE_CHECKING, Any

import narwhals as nw
import polars as pl

from weighbridge.pipeline.lake.scratch import scratch
from weighbridge.pipeline.reconcile.engines.columns import with_columns_of
from weighbridge.pipeline.reconcile.engines.engine import DUCKDB, Frame
from weighbridge.pipeline.reconcile.engines.sums import told_of_sums
from weighbridge.schemas.errors import ConfigError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_NUMBERS = count()
# How much memory DuckDB may take before it spills, in its own words ("4GB", "50%").
MEMORY = "WEIGHBRIDGE_DUCKDB_MEMORY"
# Rows on their way into and out of it lie in the same process.
_HALF = "50%"


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
    """The connection of this process, with as many threads as Polars has and at most half of the memory.

    Narwhals computes some functions on that one whatever relation it is given, and relations of two do not mix. What is
    too much for it spills into a folder of its own, not into whatever folder the process was started in.

    Raises:
        ConfigError: `MEMORY` says what is no amount of memory.
    """
    import duckdb  # noqa: PLC0415 - an optional package

    connection = duckdb.default_connection()
    connection.execute(f"SET threads = {pl.thread_pool_size()}")
    memory = os.environ.get(MEMORY) or _HALF
    try:
        connection.execute("SET memory_limit = ?", [memory])
    except duckdb.Error as error:
        raise ConfigError(
            f"{MEMORY} is no amount of memory ({type(error).__name__}): give one like 4GB or 50%, or leave it out"
        ) from None
    # Once rows have spilled, DuckDB takes no other folder.
    if connection.execute("SELECT current_setting('temp_directory')").fetchall() != [(_spilled(),)]:
        with suppress(duckdb.NotImplementedException):
            connection.execute("SET temp_directory = ?", [_spilled()])
    return OnDuckdb(connection)


@cache
def _spilled() -> str:
    """Where rows go that do not fit, as long as the process lives."""
    kept = ExitStack()
    atexit.register(kept.close)
    return str(kept.enter_context(scratch("duckdb")))
