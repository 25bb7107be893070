"""One deletion, from its beginning to its receipt.

    begun      written down, with all its receipt will say; keys are destroyed after this
    deleted    the commit is made, or the files are gone; the table's past is purged after this
    receipted  the receipt is decided, to the letter; it is put into the lake and into a file after this

A process that is killed in between leaves the deletion where it was, and the next one goes on from there: so there is
one receipt per deletion, never none and never two.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from enum import StrEnum
from typing import Any

import polars as pl

from weighbridge.pipeline.lake import row_bytes
from weighbridge.pipeline.retention.facts import FACTS
from weighbridge.schemas.enumerations import ReceiptMethod
from weighbridge.schemas.identity import erased, framed
from weighbridge.schemas.keys import KeyScope
from weighbridge.schemas.receipt import receipt_id, scope_of, scope_text
from weighbridge.schemas.tables import TABLES, UNASSIGNED

_ID = 32


class Stage(StrEnum):
    """How far a deletion has come."""

    BEGUN = "begun"
    DELETED = "deleted"
    RECEIPTED = "receipted"


class Kind(StrEnum):
    """What is deleted."""

    ROWS = "rows"
    KEYS = "keys"
    FILES = "files"
    SEGMENT = "segment"  # rows of one segment of the spool; the segment is written anew


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletion:
    """One deletion.

    Attributes:
        kind: what is deleted.
        rule: the rule or request behind it.
        scope: what was in scope, as name -> value; names no tenant.
        table: the table or folder.
        first, last: UTC days of what is deleted.
        rows: how many rows, or files.
        digest: SHA-256 over what was there (`Tally`, or the digests of files).
        method: how.
        keys: names of the keys that are destroyed.
        paths: files and folders that are deleted.
        by: who asked for it.
        stage: how far it has come.
        version: the version of the table it made.
        receipt: its receipt, once decided.
    """

    kind: Kind
    rule: str
    scope: Mapping[str, str]
    table: str
    rows: int
    method: ReceiptMethod
    by: str
    first: date | None = None
    last: date | None = None
    digest: str | None = None
    keys: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    stage: Stage = Stage.BEGUN
    version: int | None = None
    receipt: Mapping[str, Any] | None = None

    @property
    def name(self) -> str:
        """What it is called while it is pending: the same however often the same thing is begun."""
        about = [*self.unit, str(self.first), str(self.last), str(self.rows), str(self.digest)]
        parts = [*about, *self.keys, "paths", *self.paths]
        return hashlib.sha256(framed(*parts)).hexdigest()[:_ID]

    @property
    def unit(self) -> tuple[str, str, str]:
        """What it is a part of: rule, scope, table."""
        return (self.rule, scope_text(self.scope), self.table)

    def decided(self, now: datetime) -> Deletion:
        """With its receipt."""
        row: dict[str, Any] = {
            "rule": self.rule,
            "scope": scope_text(self.scope),
            "table_name": self.table,
            "first_day": _text(self.first),
            "last_day": _text(self.last),
            "rows": self.rows,
            "digest_before": self.digest,
            "method": str(self.method),
            "key_ids": sorted(map(masked, self.keys)),
            "table_version": self.version,
            "erased_at": now.astimezone(UTC).isoformat(timespec="microseconds"),
            "erased_by": self.by,
        }
        return replace(self, stage=Stage.RECEIPTED, receipt={"receipt_id": receipt_id(row), **row})

    def content(self) -> dict[str, Any]:
        """As it is written down."""
        return {
            **{name: getattr(self, name) for name in ("rule", "table", "rows", "digest", "by", "version")},
            **{name: str(getattr(self, name)) for name in ("kind", "method", "stage")},
            **{name: _text(getattr(self, name)) for name in ("first", "last")},
            "scope": scope_text(self.scope),
            "keys": list(self.keys),
            "paths": list(self.paths),
            "receipt": None if self.receipt is None else dict(self.receipt),
        }


def deletion_of(content: Mapping[str, Any]) -> Deletion:
    """The deletion that was written down."""
    return Deletion(
        kind=Kind(content["kind"]),
        rule=content["rule"],
        scope=scope_of(content["scope"]),
        table=content["table"],
        rows=content["rows"],
        method=ReceiptMethod(content["method"]),
        by=content["by"],
        first=day_of(content["first"]),
        last=day_of(content["last"]),
        digest=content["digest"],
        keys=tuple(content["keys"]),
        paths=tuple(content["paths"]),
        stage=Stage(content["stage"]),
        version=content["version"],
        receipt=content["receipt"],
    )


@dataclass(slots=True)
class Tally:
    """What is taken out of one table: days, rows, and a digest of them.

    The digest is SHA-256 over one line per day, `<day> <rows> <digest>`, where the last is the canonical digest of
    those rows: whoever holds a copy of a day can see whether it is the one that was erased.
    """

    table: str
    rows: int = 0
    first: date | None = None
    last: date | None = None
    keys: set[str] = field(default_factory=set)
    _lines: list[str] = field(default_factory=list)

    def add(self, gone: pl.DataFrame) -> None:
        """Count rows of one day, or of a table that is not kept by day."""
        about = TABLES[self.table]
        ends = gone.select(end=FACTS[self.table].end)["end"].drop_nulls()
        for name, pick in (("first", min), ("last", max)):
            days = [day for day in (getattr(self, name), *ends.unique().to_list()) if day is not None]
            setattr(self, name, pick(days, default=None))
        digest = row_bytes.digest(about, gone)
        self._lines.append(f"{gone['day'][0] if about.daily else 'all'} {gone.height} {digest}\n")
        self.rows += gone.height
        if "key_id" in gone.columns:
            self.keys.update(gone["key_id"].drop_nulls().unique())

    @property
    def digest(self) -> str | None:
        """The digest of everything that was counted, null where nothing was."""
        return hashlib.sha256("".join(self._lines).encode()).hexdigest() if self._lines else None


def digest_of_files(files: Iterable[tuple[str, str]]) -> str:
    """SHA-256 over one line per file, `<SHA-256> <name>`, in order of names."""
    lines = "".join(f"{digest} {name}\n" for name, digest in sorted(files))
    return hashlib.sha256(lines.encode()).hexdigest()


def masked(key: str) -> str:
    """The name of a key with its tenant as a hash."""
    tenant = KeyScope.of(key).tenant
    return key if tenant == UNASSIGNED else key.replace(tenant, erased(tenant), 1)


def day_of(text: str | None) -> date | None:
    """The day that ISO 8601 text names, null where there is none."""
    return None if text is None else date.fromisoformat(text)


def _text(day: date | None) -> str | None:
    return None if day is None else day.isoformat()
