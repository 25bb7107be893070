"""Doing deletions, so that each has one receipt however often the work is cut off.

The order is fixed: keys are destroyed first, then rows go in one commit per table, then the table's past goes from the
disk, then the receipt is written. What an earlier run left is finished before anything new begins.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path

import polars as pl

from weighbridge.pipeline.retention.deletion import (
    Deletion,
    Kind,
    Stage,
    Tally,
    deletion_of,
    digest_of_files,
)
from weighbridge.pipeline.retention.keys import destroy, months
from weighbridge.pipeline.retention.ledger import PENDING
from weighbridge.pipeline.retention.places import Places
from weighbridge.pipeline.retention.receipts import Receipt, complete, write
from weighbridge.schemas.enumerations import ReceiptMethod
from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.identity import NAME
from weighbridge.schemas.keys import KeyUnavailableError
from weighbridge.schemas.receipt import scope_text
from weighbridge.schemas.segment import sha256_file
from weighbridge.schemas.tables import TABLES

Taken = Callable[[pl.DataFrame], pl.Series]


class Work:
    """Deletions of one run. The lake's lock is held by whoever makes it.

    Args:
        places: where things lie.
        by: who asked.
        now: when, for receipts.

    Attributes:
        failed: what could not be deleted, and why; the next run tries it again.
    """

    def __init__(self, places: Places, *, by: str, now: datetime) -> None:
        """Begin; nothing is touched yet.

        Raises:
            ConfigError: `by` is no name.
        """
        if not NAME.fullmatch(by):
            raise ConfigError("who asked is no name: letters, digits and ._:/@- are allowed (--by NAME), no blanks")
        self.places = places
        self.by = by
        self.now = now
        self.failed: list[str] = []
        self._done: dict[str, Deletion] = {}
        self._cut_off: dict[tuple[str, str, str], list[Deletion]] = {}

    @property
    def made(self) -> int:
        """How many deletions came to their end, receipts apart."""
        return len(self._done)

    def resume(self) -> int:
        """Take up what earlier runs began; how many deletions that is."""
        self.places.ledger.tidy()
        pending = [deletion_of(content) for content in self.places.ledger.entries(PENDING).values()]
        for deletion in pending:
            if deletion.stage is not Stage.BEGUN:
                self._done[deletion.name] = deletion
            elif deletion.kind is Kind.ROWS:
                self._resume_rows(deletion)
            elif deletion.kind is Kind.SEGMENT:
                self._resume_segment(deletion)
            else:
                self._attempted(deletion, self._carry_out)
        return len(pending)

    def _resume_rows(self, deletion: Deletion) -> None:
        version = self.places.lake.noted(deletion.table, "deletion", deletion.name)
        if version is None:
            self._cut_off.setdefault(deletion.unit, []).append(deletion)  # it is done again, with the same keys
        else:
            self._deleted(deletion, version)

    def _resume_segment(self, deletion: Deletion) -> None:
        from_file = Path(deletion.paths[0]) / "manifest.json"
        if from_file.is_file() and sha256_file(from_file) == deletion.digest:
            self.places.ledger.remove(PENDING, deletion.name)
        else:
            self._deleted(deletion, None)

    def rows(
        self,
        table: str,
        taken: Taken,
        *,
        rule: str,
        scope: Mapping[str, str],
        days: Collection[date] | None,
        keys: Sequence[str] = (),
        clear: Sequence[pl.Expr] = (),
    ) -> None:
        """Delete rows of a table, or clear columns of them, in one commit.

        Args:
            table: the table.
            taken: the rows of one day -> whether each is taken.
            rule, scope: for the receipt.
            days: only these days; null: all.
            keys: keys to be destroyed before.
            clear: what columns become of rows that are taken; the rows then stay.
        """
        tally = Tally(table)

        def change(rows: pl.DataFrame) -> pl.DataFrame:
            gone = taken(rows)
            if not gone.any():
                return rows
            tally.add(rows.filter(gone))
            if not clear:
                return rows.filter(~gone)
            return rows.with_columns(
                pl.when(gone).then(become).otherwise(pl.col(become.meta.output_name())).alias(become.meta.output_name())
                for become in clear
            )

        before = self._cut_off.pop((rule, scope_text(scope), table), [])
        all_keys = tuple(sorted({*keys, *(key for earlier in before for key in earlier.keys)}))

        def begin() -> Deletion:
            method = ReceiptMethod.CLEARED if clear else ReceiptMethod.BOTH if all_keys else ReceiptMethod.DELETED
            method = method if tally.rows else ReceiptMethod.KEY_DESTROYED
            first, last = (tally.first, tally.last) if tally.rows else months(all_keys)
            return self._begin(
                Deletion(
                    kind=Kind.ROWS if tally.rows else Kind.KEYS, rule=rule, scope=scope, table=table, rows=tally.rows,
                    method=method, by=self.by, first=first, last=last, digest=tally.digest, keys=all_keys,
                ),
                before,
            )  # fmt: skip

        begun: list[Deletion] = []

        def note() -> Mapping[str, str]:
            begun.append(begin())
            self._destroy(begun[0])
            return {"deletion": begun[0].name}

        try:
            version = self.places.lake.rewrite(table, change, days=days, note=note)
            if begun:
                self._deleted(begun[0], version)
            elif all_keys:
                begun.append(begin())
                self._carry_out(begun[0])
            else:
                self._forget(before)
        except KeyUnavailableError as error:
            self.failed.append(f"{table}: {error}; nothing of it was deleted")

    def keys(self, table: str, names: Sequence[str], *, rule: str, scope: Mapping[str, str]) -> None:
        """Destroy keys, whose rows are gone or go by rules of their own."""
        if names:
            first, last = months(names)
            deletion = Deletion(
                kind=Kind.KEYS, rule=rule, scope=scope, table=table, rows=0, method=ReceiptMethod.KEY_DESTROYED,
                by=self.by, first=first, last=last, keys=tuple(sorted(names)),
            )  # fmt: skip
            self._attempted(deletion, lambda begun: self._carry_out(self._begin(begun, [])))

    def files(
        self,
        table: str,
        paths: Sequence[Path],
        *,
        rule: str,
        scope: Mapping[str, str],
        rows: int | None = None,
        first: date | None = None,
        last: date | None = None,
    ) -> None:
        """Delete files, or folders with all that is in them.

        Args:
            table: what the receipt calls them.
            paths: what goes.
            rule, scope: for the receipt.
            rows: how many rows they hold; null: how many files they are is told.
            first, last: the UTC days they are about.
        """
        if not paths:
            return
        try:
            told = [(path.name, digest) for path in paths for digest in _digests(path)]
        except OSError as error:
            self._failed(table, error)
        else:
            deletion = Deletion(
                kind=Kind.FILES, rule=rule, scope=scope, table=table, rows=len(told) if rows is None else rows,
                method=ReceiptMethod.DELETED, by=self.by, first=first, last=last, digest=digest_of_files(told),
                paths=tuple(str(path.absolute()) for path in paths),
            )  # fmt: skip
            self._attempted(deletion, lambda begun: self._carry_out(self._begin(begun, [])))

    def segment(
        self, segment: Path, digest: str, rows: int, put: Callable[[], None], *, rule: str, scope: Mapping[str, str]
    ) -> None:
        """Let `put` write a segment of the spool anew, without rows of somebody.

        Args:
            segment: the segment.
            digest: its digest before.
            rows: how many rows go.
            put: does it, all at once.
            rule, scope: for the receipt.
        """
        deletion = Deletion(
            kind=Kind.SEGMENT, rule=rule, scope=scope, table="spool", rows=rows, method=ReceiptMethod.DELETED,
            by=self.by, digest=digest, paths=(str(segment.absolute()),),
        )  # fmt: skip

        def act(begun: Deletion) -> None:
            self._begin(begun, [])
            put()
            self._deleted(begun, None)

        self._attempted(deletion, act)

    def finish(self) -> list[Receipt]:
        """Purge the past of every table that lost rows, then write the receipts; those that were made."""
        for unit in list(self._cut_off):  # begun under another rule or day, and not begun again
            self._finish_keys(self._cut_off.pop(unit))
        for table in dict.fromkeys(done.table for done in self._done.values() if done.stage is Stage.DELETED):
            if table in TABLES:
                self.places.lake.purge(table)
        for done in list(self._done.values()):
            if done.stage is Stage.DELETED:
                self._write(done.decided(self.now))
        decided = [done.receipt for done in self._done.values() if done.receipt is not None]
        made = write(self.places.lake, self.places.ledger, decided)
        for name in list(self._done):
            self.places.ledger.remove(PENDING, name)
            del self._done[name]
        complete(self.places.lake, self.places.ledger)
        return made

    def _finish_keys(self, left: Sequence[Deletion]) -> None:
        keys = tuple(sorted({key for deletion in left for key in deletion.keys}))
        if not keys:
            self._forget(left)
            return
        first, last = months(keys)
        deletion = replace(
            left[0], kind=Kind.KEYS, rows=0, first=first, last=last, digest=None, keys=keys,
            method=ReceiptMethod.KEY_DESTROYED,
        )  # fmt: skip
        self._attempted(deletion, lambda begun: self._carry_out(self._begin(begun, left)))

    def _begin(self, deletion: Deletion, before: Sequence[Deletion]) -> Deletion:
        self._write(deletion)
        self._forget([earlier for earlier in before if earlier.name != deletion.name])
        return deletion

    def _forget(self, deletions: Sequence[Deletion]) -> None:
        for deletion in deletions:
            self.places.ledger.remove(PENDING, deletion.name)

    def _carry_out(self, deletion: Deletion) -> None:
        """Destroy its keys and delete its files; done again it does nothing."""
        self._destroy(deletion)
        for path in map(Path, deletion.paths):
            _remove(path)
        self._deleted(deletion, self.places.lake.version(deletion.table) if deletion.table in TABLES else None)

    def _destroy(self, deletion: Deletion) -> None:
        if deletion.keys:
            if self.places.keys is None:
                raise KeyUnavailableError("the settings name nobody who holds keys")
            destroy(self.places.keys, deletion.keys)

    def _deleted(self, deletion: Deletion, version: int | None) -> None:
        self._write(replace(deletion, stage=Stage.DELETED, version=version))

    def _write(self, deletion: Deletion) -> None:
        self.places.ledger.write(PENDING, deletion.name, deletion.content())
        if deletion.stage is not Stage.BEGUN:
            self._done[deletion.name] = deletion

    def _attempted(self, deletion: Deletion, act: Callable[[Deletion], None]) -> None:
        try:
            act(deletion)
        except KeyUnavailableError as error:
            self.failed.append(f"{deletion.table}: {error}")
        except OSError as error:
            self._failed(deletion.table, error)

    def _failed(self, table: str, error: OSError) -> None:
        self.failed.append(f"{table}: {error.strerror or type(error).__name__}; it is tried again")


def _digests(path: Path) -> list[str]:
    """SHA-256 of the file, or of each in the folder; of a link, of where it leads: what lies there is not ours."""
    if path.is_symlink():
        return [hashlib.sha256(os.fsencode(path.readlink())).hexdigest()]
    files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
    return [sha256_file(file) for file in files]


def _remove(path: Path) -> None:
    """Out of sight first: what a cut-off deletion leaves is no damaged folder. Of a link only the link goes."""
    if path.is_symlink():
        path.unlink()
        return
    hidden = path.with_name(f".{path.name}.gone")
    shutil.rmtree(hidden, ignore_errors=True)
    if path.is_dir():
        path.rename(hidden)
        shutil.rmtree(hidden)
    else:
        path.unlink(missing_ok=True)
