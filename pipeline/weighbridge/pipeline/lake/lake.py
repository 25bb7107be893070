"""The lake: one Delta table per table of the vocabulary, and the only place that knows how they lie on disk.

    <root>/lake.json                      what this folder is, and its schema version
    <root>/<domain>/<table>/day=.../      Parquet files, sorted by the table's key inside a file
    <root>/<domain>/<table>/_delta_log/   which files count; a commit is one file that is there or is not

A commit is atomic: a process killed at any instant leaves the old version or the new one, and at most files that
no version names, which `compact` removes. Nothing else is written, so nothing else can be torn.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import date
from pathlib import Path

import polars as pl
from deltalake import CommitProperties, DeltaTable, Schema
from deltalake.transaction import AddAction, RemoveAction

from weighbridge.pipeline.lake import row_bytes
from weighbridge.pipeline.lake.failure import told
from weighbridge.pipeline.lake.files import Part, by_day, new_path, ordered, remove_file, write_file
from weighbridge.pipeline.lake.handles import Handles
from weighbridge.pipeline.lake.place import Place
from weighbridge.pipeline.lake.purge import Purged, purge
from weighbridge.pipeline.lake.shape import declared, empty, fitted, polars_schema
from weighbridge.schemas.errors import LakeError
from weighbridge.schemas.table import Table
from weighbridge.schemas.tables import TABLES

NO_NOTE: Mapping[str, str] = {}
# Readers that opened a version before it was compacted keep their files for this long.
KEEP_HOURS = 1


class Lake:
    """Tables by day. Reading needs no lock and sees one committed version; writing takes the writer's lock.

    Args:
        root: a folder, or the address of an object store; nothing is touched yet.
    """

    def __init__(self, root: Path | str) -> None:
        """Name a lake."""
        self.place = Place(str(root))
        self._handles = Handles()

    @classmethod
    def create(cls, root: Path | str) -> Lake:
        """Make a lake, or do nothing where one is already.

        Raises:
            LakeError: the folder cannot be made.
        """
        lake = cls(root)
        lake.place.make()
        lake.place.check()
        return lake

    @classmethod
    def open(cls, root: Path | str) -> Lake:
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

    def lock(self) -> AbstractContextManager[None]:
        """Be the only writer while the block runs; every write takes it too, and the same thread may enter again.

        Raises:
            LakeBusyError: another process or thread is writing.
        """
        return self.place.lock()

    def append(self, table: str, frame: pl.DataFrame, *, note: Mapping[str, str] = NO_NOTE) -> int:
        """Add rows in one commit and return how many; no rows, no commit.

        Args:
            table: the table.
            frame: its rows; see `shaped`.
            note: short facts for the table's history.

        Raises:
            LakeError: the rows do not fit, or the lake cannot be written; nothing was committed.
        """
        about = declared(table)
        rows = fitted(table, frame)
        if rows.height:
            with self.lock(), told(f"writing {table}", self.place.root):
                opened = self._writable(about)
                with self._drafts(about) as write:
                    self._commit(about, opened, [write(day, of_day) for day, of_day in by_day(about, rows)], note)
        return rows.height

    def replace(
        self, table: str, frame: pl.DataFrame, *, days: Collection[date] | None, note: Mapping[str, str] = NO_NOTE
    ) -> None:
        """Make `frame` the whole content of those days, in one commit; none where it already is.

        Args:
            table: the table.
            frame: the rows, possibly none.
            days: exactly these days are overwritten; null means the whole table.
            note: short facts for the table's history.

        Raises:
            LakeError: the frame has rows of another day or that do not fit; nothing was committed.
        """
        about = declared(table)
        rows = fitted(table, frame)
        if days is not None:
            self._check_days(about, rows, days)
        with self.lock(), told(f"writing {table}", self.place.root):
            present = self._files(table)
            actions: list[AddAction | RemoveAction] = []
            gone = set(present["day"].unique() if days is None else days)
            with self._drafts(about) as write:
                for day, of_day in by_day(about, rows):
                    gone.discard(day)
                    if not self._holds(about, present, day, of_day):
                        actions += [write(day, of_day), *_removals(present, day)]
                actions += [removal for day in gone for removal in _removals(present, day)]
                if actions:
                    self._commit(about, self._writable(about), actions, note)

    def scan(
        self, table: str, *, first: date | None = None, last: date | None = None, columns: Sequence[str] | None = None
    ) -> pl.LazyFrame:
        """The rows of a table as they were committed last.

        Args:
            table: the table; one that was never written has no rows.
            first, last: only these UTC days, both inclusive.
            columns: only these columns, in this order. A column that is newer than the files is null.

        Raises:
            LakeError: there is no such column, the table is not kept by day, or a later version wrote it.
        """
        about = declared(table)
        names = list(about.names if columns is None else columns)
        if unknown := [name for name in names if name not in about.names]:
            raise LakeError(f"{table} has no columns {unknown}; it has {', '.join(about.names)}")
        if not about.daily and (first or last):
            raise LakeError(f"{table} is not kept by day; scan it without first and last")
        opened = self._opened(table)
        frame = empty(table).lazy() if opened is None else self._scanned(about, opened)
        if first is not None:
            frame = frame.filter(pl.col("day") >= first)
        if last is not None:
            frame = frame.filter(pl.col("day") <= last)
        return frame.select(names)

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
        opened = self._opened(table)
        if opened is None:
            return 0
        return int(pl.DataFrame(opened.get_add_actions(flatten=True))["num_records"].cast(pl.Int64).sum())

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

    def compact(self, table: str, *, keep_hours: int = KEEP_HOURS) -> int:
        """Merge the files of each day into one sorted file, remove files no version needs, return how many days.

        Args:
            table: the table.
            keep_hours: files that left the table less than this long ago stay, for readers that opened it before.

        Raises:
            LakeError: the lake cannot be written; days already merged stay merged, no row is lost.
        """
        about = declared(table)
        with self.lock(), told(f"compacting {table}", self.place.root):
            present = self._files(table)
            crowded = present.group_by("day").len().filter(pl.col("len") > 1)["day"].sort().to_list()
            for day in crowded:
                with self._drafts(about) as write:
                    merged = write(day, self._day(about, day))
                    self._commit(
                        about, self._writable(about), [merged, *_removals(present, day)], {"compacted": "true"}
                    )
            if present.height:
                DeltaTable(self._uri(table)).vacuum(
                    retention_hours=keep_hours, dry_run=False, enforce_retention_duration=False, full=True
                )
        return len(crowded)

    def rewrite(
        self,
        table: str,
        change: Callable[[pl.DataFrame], pl.DataFrame],
        *,
        days: Collection[date] | None,
        note: Callable[[], Mapping[str, str]] = lambda: NO_NOTE,
    ) -> int | None:
        """Put `change(rows)` in the place of the rows of each day, all days in one commit; its version.

        Args:
            table: the table.
            change: the rows of one day, sorted by key -> what they shall be; called once per day, one day in memory.
            days: only these days; null means the whole table.
            note: short facts for the table's history (see `noted`); asked for when everything is written and nothing
                is committed yet, and not at all where nothing changes. If it raises, nothing is committed.

        Returns:
            The version that was committed, null where nothing changed.

        Raises:
            LakeError: the lake cannot be written; nothing was committed.
        """
        about = declared(table)
        with self.lock(), told(f"writing {table}", self.place.root):
            opened, present = self._opened(table), self._files(table)
            actions: list[AddAction | RemoveAction] = []
            with self._drafts(about) as write:
                for day in present["day"].unique().sort().to_list():
                    if days is not None and day not in days:
                        continue
                    before = self._day(about, day, opened)
                    after = ordered(about, fitted(table, change(before)))
                    if not after.equals(before):
                        actions += [*([write(day, after)] if after.height else []), *_removals(present, day)]
                if actions:
                    self._commit(about, self._writable(about), actions, note())
            return self.version(table) if actions else None

    def noted(self, table: str, name: str, value: str) -> int | None:
        """The version of the last commit with this fact in its note, null where none is remembered."""
        opened = self._opened(table)
        if opened is None:
            return None
        with told(f"reading the history of {table}", self.place.root):
            versions = [int(commit["version"]) for commit in opened.history() if commit.get(name) == value]
        return max(versions, default=None)

    def purge(self, table: str) -> Purged:
        """Leave nothing on disk but the present version: no file or log entry of rows that are gone.

        Raises:
            LakeError: the lake cannot be written; running it again finishes it.
        """
        with self.lock(), told(f"purging {table}", self.place.root):
            opened = self._fresh(table)
            if opened is None:
                return Purged(0, 0)
            return purge(self.place, self._uri(table), opened, self._files(table)["path"])

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
            if not DeltaTable.is_deltatable(uri):
                return None
            opened = DeltaTable(uri)
        later = [field.name for field in opened.schema().fields if field.name not in declared(table).names]
        if later:
            raise LakeError(
                f"{uri} has columns this installation does not know ({', '.join(later)}): a later version wrote it. "
                "Upgrade weighbridge on this host; nothing was read or changed."
            )
        return opened

    def _scanned(self, about: Table, opened: DeltaTable) -> pl.LazyFrame:
        stored = {field.name for field in opened.schema().fields}
        return pl.scan_delta(opened).select(
            pl.col(name) if name in stored else pl.lit(None, dtype=kind).alias(name)
            for name, kind in polars_schema(about.name).items()
        )

    def _check_days(self, about: Table, rows: pl.DataFrame, days: Collection[date]) -> None:
        if not about.daily:
            raise LakeError(f"{about.name} is not kept by day; replace it with days=None")
        others = sorted(set(rows["day"].unique()) - set(days))
        if others:
            raise LakeError(f"rows for {about.name} are of {others[0]}, which is not among the days to replace")

    def _files(self, table: str) -> pl.DataFrame:
        """The files of the last version: path, size, rows, day (null where the table is not kept by day)."""
        opened = self._opened(table)
        if opened is None:
            return pl.DataFrame(schema=_FILE)
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

    def _holds(self, about: Table, present: pl.DataFrame, day: date | None, rows: pl.DataFrame) -> bool:
        """Whether a day has exactly these rows already."""
        stored = present.filter(pl.col("day").eq_missing(day))["rows"].sum()
        return bool(stored == rows.height) and self._day(about, day).equals(rows)

    def _writable(self, about: Table) -> DeltaTable:
        """The table, made if it was never written, with the columns of this version."""
        opened = self._fresh(about.name) or DeltaTable.create(
            self._uri(about.name),
            schema=about.schema(),
            mode="ignore",
            partition_by=["day"] if about.daily else None,
            configuration={"delta.dataSkippingStatsColumns": ",".join(c for c in about.public if c != "day")},
        )
        stored = {field.name for field in opened.schema().fields}
        added = [field for field in Schema.from_arrow(about.schema()).fields if field.name not in stored]
        if added:
            opened.alter.add_columns(added)
            opened = DeltaTable(self._uri(about.name))
        return opened

    @contextmanager
    def _drafts(self, about: Table) -> Iterator[Callable[[date | None, pl.DataFrame], AddAction]]:
        """A writer of files that are taken away again unless a commit names them: a full disk is not left full."""
        drafts: list[str] = []

        def write(day: date | None, rows: pl.DataFrame) -> AddAction:
            path = new_path(day)
            drafts.append(path)
            return write_file(self.place, about, day, rows, path)

        try:
            yield write
        except BaseException:
            # The failure may have come after the commit; what the table names is kept, and so is all if it cannot tell.
            with suppress(Exception):
                named = set(self._files(about.name)["path"])
                for path in drafts:
                    if path not in named:
                        remove_file(self.place, about, path)
            raise

    def _commit(
        self, about: Table, opened: DeltaTable, actions: Sequence[AddAction | RemoveAction], note: Mapping[str, str]
    ) -> None:
        opened.create_write_transaction(
            [*actions],
            mode="append",
            schema=opened.schema(),
            partition_by=["day"] if about.daily else [],
            commit_properties=CommitProperties(custom_metadata=dict(note)),
        )


_FILE = {"path": pl.String, "size": pl.Int64, "rows": pl.Int64, "day": pl.Date}


def _removals(present: pl.DataFrame, day: date | None) -> list[RemoveAction]:
    """The actions that take the files of a day out of the table; they stay on disk until `compact` removes them."""
    now = time.time_ns() // 1_000_000
    values: dict[str, str | None] = {} if day is None else {"day": day.isoformat()}
    files = present.filter(pl.col("day").eq_missing(day)).select("path", "size")
    return [RemoveAction(path, True, now, size, values) for path, size in files.iter_rows()]
