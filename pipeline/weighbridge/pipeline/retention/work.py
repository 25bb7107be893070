"""Doing deletions, so that each has one receipt however often the work is cut off.

The order is fixed: keys are destroyed first, then rows go in one commit per table, then the table's past goes from the
disk, then the receipt is written. What an earlier run left is finished before anything new begins.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import date
from pathlib import Path

import polars as pl

from weighbridge.pipeline.retention.course import Course
from weighbridge.pipeline.retention.deletion import Deletion, Kind, Tally, digest_of_files
from weighbridge.pipeline.retention.keys import months
from weighbridge.schemas.enumerations import ReceiptMethod
from weighbridge.schemas.keys import KeyUnavailableError
from weighbridge.schemas.receipt import scope_text
from weighbridge.schemas.segment import sha256_file

Taken = Callable[[pl.DataFrame], pl.Series]


class Work(Course):
    """What is deleted in one run: rows, keys, files, parts of segments. The lake's lock is held by whoever makes it."""

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


def _digests(path: Path) -> list[str]:
    """SHA-256 of the file, or of each in the folder; of a link, of where it leads: what lies there is not ours."""
    if path.is_symlink():
        return [hashlib.sha256(os.fsencode(path.readlink())).hexdigest()]
    files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
    return [sha256_file(file) for file in files]
