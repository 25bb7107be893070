"""The course of deletions of one run, and of those an earlier run began.

begun --> keys destroyed --> deleted --> purged --> receipted

Each step is written down before the next is taken, so a run that is cut off anywhere is taken up where it stopped.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from weighbridge.pipeline.retention.deletion import Deletion, Kind, Stage, deletion_of
from weighbridge.pipeline.retention.keys import destroy, months
from weighbridge.pipeline.retention.ledger import PENDING
from weighbridge.pipeline.retention.places import Places
from weighbridge.pipeline.retention.receipts import Receipt, complete, write
from weighbridge.schemas.enumerations import ReceiptMethod
from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.identity import NAME
from weighbridge.schemas.keys import KeyUnavailableError
from weighbridge.schemas.segment import sha256_file
from weighbridge.schemas.tables import TABLES


class Course:
    """Deletions under way. The lake's lock is held by whoever makes it.

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
