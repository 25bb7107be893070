"""What was committed: the tables of a lake, read from one version each. Reading needs no lock and writes nothing."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Sequence
from datetime import date
from functools import lru_cache
from pathlib import Path
from typing import Self

import polars as pl
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from weighbridge.pipeline.lake import row_bytes
from weighbridge.pipeline.lake.failure import told
from weighbridge.pipeline.lake.files import Part, ordered
from weighbridge.pipeline.lake.handles import Handles
from weighbridge.pipeline.lake.place import Place
from weighbridge.pipeline.lake.shape import declared, empty, polars_schema
from weighbridge.pipeline.lake.small import SmallTables
from weighbridge.pipeline.lake.sound import check_sizes, damaged
from weighbridge.schemas.enumerations import Domain
from weighbridge.schemas.errors import LakeError
from weighbridge.schemas.table import Table
from weighbridge.schemas.tables import TABLES

_FILE = {"path": pl.String, "size": pl.Int64, "rows": pl.Int64, "day": pl.Date}


# So many lakes of a process have their tables kept in mind.
_LAKES = 4


@lru_cache(maxsize=_LAKES)
def _memory(_: str) -> tuple[Handles, SmallTables]:
    """What is known of the tables of a lake: the steps of a night open it one after the other."""
    return Handles(), SmallTables()


# The lakes this process named last, for whoever has to find out what an engine stumbled over.
_NAMED: deque[str] = deque(maxlen=_LAKES)


def damaged_file() -> LakeError | None:
    """The error about a damaged file of the lakes that were opened here; null where none is found, or none is local."""
    for root in sorted(set(_NAMED)):
        lake = Committed(root)
        if lake.place.local is None or not lake.place.local.is_dir():
            continue
        try:
            parts = [part for table in TABLES for part in lake.parts(table)]
        except LakeError as error:
            return error
        found = damaged(lake.root, [Path(part.address) for part in parts])
        if found is not None:
            return found
    return None


class Committed:
    """Tables by day, as they were committed last.

    Args:
        root: a folder, or the address of an object store; nothing is touched yet.
    """

    def __init__(self, root: Path | str) -> None:
        """Name a lake."""
        self.place = Place(str(root))
        _NAMED.append(str(root))
        self._handles, self._small = _memory(str(root))

    @classmethod
    def open(cls, root: Path | str) -> Self:
        """An existing lake.

        Raises:
            LakeError: there is none, or it is of a later schema version.
        """
        lake = cls(root)
        lake.place.check()
        return lake

    @property
    def root(self) -> str:
        """Where it lies."""
        return self.place.root

    def scan(
        self, table: str, *, first: date | None = None, last: date | None = None, columns: Sequence[str] | None = None
    ) -> pl.LazyFrame:
        """The rows of a table as they were committed last.

        Args:
            table: the table; one that was never written has no rows.
            first, last: only these UTC days, both inclusive.
            columns: only these columns, in this order. A column that is newer than the files is null.

        Raises:
            LakeError: there is no such column, the table is not kept by day, a later version wrote it, or a file of
                these days is not there, or not as long as it was written.
        """
        about = declared(table)
        names = list(about.names if columns is None else columns)
        if unknown := [name for name in names if name not in about.names]:
            raise LakeError(f"{table} has no columns {unknown}; it has {', '.join(about.names)}")
        if not about.daily and (first or last):
            raise LakeError(f"{table} is not kept by day; scan it without first and last")
        opened = self._opened(table)
        if opened is not None and self.place.local is not None:
            self._check(table, opened, first, last)
        frame = empty(table).lazy() if opened is None else self._looked_at(about, opened)
        if first is not None:
            frame = frame.filter(pl.col("day") >= first)
        if last is not None:
            frame = frame.filter(pl.col("day") <= last)
        return frame.select(names)

    def _check(self, table: str, opened: DeltaTable, first: date | None, last: date | None) -> None:
        """See that the files of these days are there as they were written, before an engine stumbles over one."""
        folder = Path(self._uri(table))
        files = self._handles.told(folder, opened, lambda: self._listed(opened))
        if first is not None:
            files = files.filter(pl.col("day") >= first)
        if last is not None:
            files = files.filter(pl.col("day") <= last)
        check_sizes(self.root, ((folder / path, size) for path, size in files.select("path", "size").iter_rows()))

    def days(self, table: str) -> list[date]:
        """The days that have rows, in order; no data is read."""
        if not declared(table).daily:
            raise LakeError(f"{table} is not kept by day")
        opened = self._opened(table)
        found = [] if opened is None else opened.partitions()
        return sorted({date.fromisoformat(part["day"]) for part in found})

    def parts(self, table: str) -> list[Part]:
        """The files of the last version, in order of day and name; no data is read."""
        files = self._files(table).sort("day", "path")
        return [
            Part(day, rows, self.place.at(declared(table).domain, table, path))
            for path, rows, day in files.select("path", "rows", "day").iter_rows()
        ]

    def rows(self, table: str) -> int:
        """How many rows a table has, from the statistics of its files."""
        return int(self._files(table)["rows"].sum())

    def counts(self, table: str) -> dict[date | None, int]:
        """Day -> how many rows it has, from the statistics of its files; null stands for a table not kept by day."""
        found = self._files(table).group_by("day").agg(pl.col("rows").sum()).sort("day")
        return dict(found.iter_rows())

    def version(self, table: str) -> int | None:
        """The number of the last commit, null where there is none."""
        opened = self._opened(table)
        return None if opened is None else opened.version()

    def marks(self, table: str) -> dict[date | None, str]:
        """Day -> a mark that changes whenever the files of that day do; null stands for a table not kept by day.

        What was made from a day is up to date for as long as its mark is the one it was made from. No data is read.
        """
        files = self._files(table).group_by("day").agg(pl.col("path").sort())
        return {day: hashlib.sha256("\n".join(paths).encode()).hexdigest()[:16] for day, paths in files.iter_rows()}

    def digest(self, table: str) -> str:
        """The canonical digest of a table's rows: the same whatever files, commits and order they came in."""
        return row_bytes.digest(declared(table), self.scan(table).collect())

    def digests(self) -> dict[str, str]:
        """Table name -> canonical digest, of every table that has rows."""
        return {name: self.digest(name) for name in TABLES if self.rows(name)}

    def noted(self, table: str, name: str, value: str) -> int | None:
        """The version of the last commit with this fact in its note, null where none is remembered."""
        opened = self._opened(table)
        if opened is None:
            return None
        with told(f"reading the history of {table}", self.place.root):
            versions = [int(commit["version"]) for commit in opened.history() if commit.get(name) == value]
        return max(versions, default=None)

    def _uri(self, table: str) -> str:
        return self.place.at(declared(table).domain, table)

    def _opened(self, table: str) -> DeltaTable | None:
        """The table to read from, null where it was never written."""
        if self.place.local is None:
            return self._fresh(table)
        return self._handles.get(Path(self._uri(table)), lambda: self._fresh(table))

    def _fresh(self, table: str) -> DeltaTable | None:
        """The table to commit to: a handle changes with its commits, so nobody else has it."""
        uri = self._uri(table)
        with told(f"reading {table}", self.place.root):
            try:
                opened = DeltaTable(uri)
            except TableNotFoundError:
                return None
        later = [field.name for field in opened.schema().fields if field.name not in declared(table).names]
        if later:
            raise LakeError(
                f"{uri} has columns this installation does not know ({', '.join(later)}): a later version wrote it. "
                "Upgrade weighbridge on this host; nothing was read or changed."
            )
        return opened

    def _looked_at(self, about: Table, opened: DeltaTable) -> pl.LazyFrame:
        """A table to read from: in memory where it is small. Of content nothing is kept longer than it is needed."""
        if self.place.local is None or about.domain is Domain.CONTENT:
            return self._scanned(about, opened)
        folder = Path(self._uri(about.name))
        files = self._handles.told(folder, opened, lambda: self._listed(opened))
        small = self._small.rows(folder, opened, files, lambda: self._scanned(about, opened).collect())
        return self._scanned(about, opened) if small is None else small.lazy()

    def _scanned(self, about: Table, opened: DeltaTable) -> pl.LazyFrame:
        stored = {field.name for field in opened.schema().fields}
        return pl.scan_delta(opened).select(
            pl.col(name) if name in stored else pl.lit(None, dtype=kind).alias(name)
            for name, kind in polars_schema(about.name).items()
        )

    def _files(self, table: str) -> pl.DataFrame:
        """The files of the last version: path, size, rows, day (null where the table is not kept by day)."""
        opened = self._opened(table)
        if opened is None:
            return pl.DataFrame(schema=_FILE)
        if self.place.local is None:
            return self._listed(opened)
        return self._handles.told(Path(self._uri(table)), opened, lambda: self._listed(opened))

    @staticmethod
    def _listed(opened: DeltaTable) -> pl.DataFrame:
        files = pl.DataFrame(opened.get_add_actions(flatten=True))
        day = pl.col("partition.day") if "partition.day" in files.columns else pl.lit(None, dtype=pl.Date)
        return files.select("path", size="size_bytes", rows="num_records", day=day).cast(_FILE)  # type: ignore[arg-type]

    def _day(self, about: Table, day: date | None, opened: DeltaTable | None = None) -> pl.DataFrame:
        """The stored rows of one day, sorted by key; whoever asks for many days opens the table once."""
        if opened is not None:
            rows = self._scanned(about, opened)
            rows = rows if day is None else rows.filter(pl.col("day") == day)
        else:
            rows = self.scan(about.name) if day is None else self.scan(about.name, first=day, last=day)
        return ordered(about, rows.collect())
