"""What retention writes down outside the lake, so that a lake restored from a backup is emptied again.

    <folder>/holds/<id>.json       who may not be deleted, why, and when that ended
    <folder>/erasures/<id>.json    requests that were carried out: whom, by hashes; up to which day
    <folder>/pending/<id>.json     deletions that have begun and whose receipt is not written yet
    <folder>/receipts/<id>.json    proofs of deletions, one a file, for a regulator to read
    <folder>/checked.json          up to which state of each table the erasures were held against it
    <folder>/clock.json            when retention did its work last, by the clock of then

Each file is there whole or not at all; whoever writes holds the lake's lock. Names of tenants are hashes here, except
in a hold that stands, and in what is pending: that is gone as soon as its receipt is written.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from weighbridge.schemas.errors import ConfigError

HOLDS, ERASURES, PENDING, RECEIPTS = "holds", "erasures", "pending", "receipts"
KINDS = (HOLDS, ERASURES, PENDING, RECEIPTS)
_DRAFT = re.compile(r"\..+\.json\.[0-9]{1,10}")
_CHECKED, _CLOCK = "checked.json", "clock.json"
_DAMAGED = "{} is not what retention wrote there; restore the file from a backup"


@dataclass(frozen=True, slots=True)
class Ledger:
    """The folder. Nothing is touched until something is written."""

    folder: Path

    def entries(self, kind: str) -> dict[str, dict[str, Any]]:
        """Id -> content, in order of ids.

        Raises:
            ConfigError: a file is not what was written.
        """
        return {path.stem: _read(path) for path in sorted((self.folder / kind).glob("*.json"))}

    def entry(self, kind: str, name: str) -> dict[str, Any] | None:
        """One of them, null where it is not there."""
        path = self._path(kind, name)
        return _read(path) if path.is_file() else None

    def write(self, kind: str, name: str, content: Mapping[str, Any]) -> None:
        """Write one; it is on disk when this returns."""
        _write(self._path(kind, name), content)

    def remove(self, kind: str, name: str) -> None:
        """Take one away; one that is not there is no error."""
        path = self._path(kind, name)
        path.unlink(missing_ok=True)
        if path.parent.is_dir():
            _sync(path.parent)

    def tidy(self) -> None:
        """Take away what processes that were killed left half written; nobody else may be writing.

        Only drafts of our own: the folder may lie in a repository, or hold what an editor or a file server hides there.
        """
        for folder in (self.folder, *(self.folder / kind for kind in KINDS)):
            for path in folder.glob(".*") if folder.is_dir() else ():
                if _DRAFT.fullmatch(path.name) and path.is_file():
                    path.unlink()

    def checked(self) -> dict[str, Any]:
        """What `check` wrote last."""
        path = self.folder / _CHECKED
        return _read(path) if path.is_file() else {}

    def check(self, content: Mapping[str, Any]) -> None:
        """Remember up to which state of the tables the erasures were held against them."""
        if content != self.checked():
            _write(self.folder / _CHECKED, content)

    def last_run(self) -> datetime | None:
        """When retention did its work last; null where it never did.

        Raises:
            ConfigError: the file is not what was written.
        """
        path = self.folder / _CLOCK
        if not path.is_file():
            return None
        try:
            return datetime.fromisoformat(_read(path)["at"]).astimezone(UTC)
        except (KeyError, TypeError, ValueError):
            raise ConfigError(_DAMAGED.format(path)) from None

    def ran(self, now: datetime) -> None:
        """Remember that retention did its work at this time."""
        _write(self.folder / _CLOCK, {"at": now.astimezone(UTC).isoformat()})

    def _path(self, kind: str, name: str) -> Path:
        return self.folder / kind / f"{name}.json"


def _read(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_bytes())
        if not isinstance(content, dict):
            raise TypeError
    except (ValueError, TypeError):
        raise ConfigError(_DAMAGED.format(path)) from None
    return content


def _write(path: Path, content: Mapping[str, Any]) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump(content, file, indent=1, sort_keys=True, ensure_ascii=False)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    _sync(path.parent)


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
