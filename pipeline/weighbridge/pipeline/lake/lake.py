"""The lake: one Delta table per table of the vocabulary, and the only place that knows how they lie on disk.

    <root>/lake.json                      what this folder is, and its schema version
    <root>/<domain>/<table>/day=.../      Parquet files, sorted by the table's key inside a file
    <root>/<domain>/<table>/_delta_log/   which files count; a commit is one file that is there or is not

A commit is atomic: a process killed at any instant leaves the old version or the new one, and at most files that
no version names, which `compact` removes. Nothing else is written, so nothing else can be torn.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import date
from pathlib import Path
from typing import Self

import polars as pl
from deltalake import CommitProperties, DeltaTable, Schema
from deltalake.transaction import AddAction, RemoveAction

from weighbridge.pipeline.lake.committed import Committed
from weighbridge.pipeline.lake.failure import told
from weighbridge.pipeline.lake.files import by_day, new_path, ordered, removals, remove_file, write_file
from weighbridge.pipeline.lake.purge import Purged, purge
from weighbridge.pipeline.lake.shape import declared, fitted
from weighbridge.schemas.errors import LakeError
from weighbridge.schemas.table import Table

NO_NOTE: Mapping[str, str] = {}
# Readers that opened a version before it was compacted keep their files for this long.
KEEP_HOURS = 1


class Lake(Committed):
    """Tables by day. Reading needs no lock and sees one committed version; writing takes the writer's lock.

    Args:
        root: a folder, or the address of an object store; nothing is touched yet.
    """

    @classmethod
    def create(cls, root: Path | str) -> Self:
        """Make a lake, or do nothing where one is already.

        Raises:
            LakeError: the folder cannot be made.
        """
        lake = cls(root)
        lake.place.make()
        lake.place.check()
        return lake

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
                        actions += [write(day, of_day), *removals(present, day)]
                actions += [removal for day in gone for removal in removals(present, day)]
                if actions:
                    self._commit(about, self._writable(about), actions, note)

    def compact(self, table: str, *, keep_hours: int = KEEP_HOURS, runs: int = 2) -> int:
        """Merge the files of each day into one sorted file, remove files no version needs, return how many days.

        Args:
            table: the table.
            runs: only days with at least so many files are merged, and where there are none nothing is removed.
            keep_hours: files that left the table less than this long ago stay, for readers that opened it before.

        Raises:
            LakeError: the lake cannot be written; days already merged stay merged, no row is lost.
        """
        about = declared(table)
        with self.lock(), told(f"compacting {table}", self.place.root):
            present = self._files(table)
            crowded = present.group_by("day").len().filter(pl.col("len") >= max(2, runs))["day"].sort().to_list()
            for day in crowded:
                with self._drafts(about) as write:
                    merged = write(day, self._day(about, day))
                    self._commit(about, self._writable(about), [merged, *removals(present, day)], {"compacted": "true"})
            if crowded or (present.height and runs <= 2):
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
                        actions += [*([write(day, after)] if after.height else []), *removals(present, day)]
                if actions:
                    self._commit(about, self._writable(about), actions, note())
            return self.version(table) if actions else None

    def purge(self, table: str) -> Purged:
        """Leave nothing on disk but the present version: no file or log entry of rows that are gone.

        Raises:
            LakeError: the lake cannot be written; running it again finishes it.
        """
        with self.lock(), told(f"purging {table}", self.place.root):
            opened = self._fresh(table)
            if opened is None:
                return Purged(0, 0)
            purged = purge(self.place, self._uri(table), opened, self._listed(opened)["path"])
            self._small.forget(Path(self._uri(table)))
            return purged

    def _check_days(self, about: Table, rows: pl.DataFrame, days: Collection[date]) -> None:
        if not about.daily:
            raise LakeError(f"{about.name} is not kept by day; replace it with days=None")
        others = sorted(set(rows["day"].unique()) - set(days))
        if others:
            raise LakeError(f"rows for {about.name} are of {others[0]}, which is not among the days to replace")

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
        if self.place.local is not None:
            self._handles.keep(Path(self._uri(about.name)), opened)
            # What was erased is not left in memory until somebody asks for the table again.
            self._small.forget(Path(self._uri(about.name)))
