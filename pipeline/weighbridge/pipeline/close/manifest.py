"""The manifest of a close pack: what the month was made of, and the one root that all of it leads to.

    root = Merkle root over one leaf per entry: the close itself, each table, part, digest and file, in that order

Every field of the manifest is in an entry, so a manifest that was edited leads to another root, however well its own
digests were put right.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from weighbridge.pipeline.close.layout import CLOSED, FIGURES, MANIFEST, PINS, PartName, is_part, pin
from weighbridge.pipeline.close.merkle import root
from weighbridge.pipeline.close.plain import DamagedError, document, parsed
from weighbridge.schemas.identity import framed
from weighbridge.schemas.table import Table
from weighbridge.schemas.version import SCHEMA_VERSION

FORMAT = "weighbridge close"
VERSION = 1
DIGESTS = ("figures", "prices", "rules", "code", "lock", "settings")
_HEX = re.compile(r"[0-9a-f]{64}")
_MONTH = re.compile(r"\d{4}-(0[1-9]|1[0-2])")


@dataclass(frozen=True, slots=True)
class PartEntry:
    """One part of a table.

    Attributes:
        name: table and part.
        rows: how many rows it had when the month was closed.
        root: Merkle root over their leaves.
    """

    name: PartName
    rows: int
    root: str


@dataclass(frozen=True, slots=True)
class TableEntry:
    """One table.

    Attributes:
        columns: the columns its canonical rows are made of, in order.
        rows: of the month itself; those of `neighbours` are not counted.
        parts: its parts, in order.
    """

    table: str
    columns: tuple[str, ...]
    rows: int
    parts: tuple[PartEntry, ...]

    @property
    def root(self) -> str:
        """Merkle root over the roots of its parts."""
        return root([bytes.fromhex(part.root) for part in self.parts]).hex()

    def declared(self) -> Table:
        """The table as it was when the month was closed: later columns are left out.

        Raises:
            DamagedError: this version does not know a table or column of that name.
        """
        known = CLOSED.get(self.table)
        if known is None or not set(self.columns) <= set(known.names):
            raise DamagedError(
                f"{MANIFEST}: the table {self.table} has columns this version does not know; verify the pack with the "
                "version that closed it, or a later one"
            )
        columns = tuple(known.column(name) for name in self.columns)
        return Table(known.name, known.domain, known.doc, columns, known.key, known.daily, known.since)


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a close pack says about itself.

    Attributes:
        period: the month.
        code_version: version of the product that closed it.
        tables: by name.
        digests: name of `DIGESTS` -> digest.
        files: path -> (bytes, SHA-256) of every file but the manifest and the seal.
    """

    period: str
    code_version: str
    tables: Mapping[str, TableEntry]
    digests: Mapping[str, str]
    files: Mapping[str, tuple[int, str]]
    schema_version: int = SCHEMA_VERSION

    @property
    def rows(self) -> int:
        """Rows of the month, of all tables."""
        return sum(table.rows for table in self.tables.values())

    @property
    def parts(self) -> dict[tuple[str, str], PartEntry]:
        """Every part, by table and name."""
        return {(p.name.table, p.name.part): p for table in self.tables.values() for p in table.parts}

    @property
    def paths(self) -> set[str]:
        """Every file its parts, pins and figures stand in."""
        of_parts = {
            path for part in self.parts.values() for path in (part.name.rows, part.name.leaves, part.name.salts)
        }
        return {FIGURES, *map(pin, PINS), *of_parts}

    def root(self) -> str:
        """The root that everything leads to."""
        return root([hashlib.sha256(b"\x02" + entry).digest() for entry in self._entries()]).hex()

    def _entries(self) -> Iterator[bytes]:
        yield framed("close", VERSION, self.period, self.schema_version, self.code_version)
        for name, table in sorted(self.tables.items()):
            yield framed("table", name, table.rows, table.root, *table.columns)
            for part in table.parts:
                yield framed("part", name, part.name.part, part.rows, part.root)
        for name, digest in sorted(self.digests.items()):
            yield framed("digest", name, digest)
        for path, (size, digest) in sorted(self.files.items()):
            yield framed("file", path, size, digest)

    def to_json(self) -> bytes:
        """The bytes of the manifest file."""
        return document(
            {
                "format": FORMAT,
                "version": VERSION,
                "period": self.period,
                "schema_version": self.schema_version,
                "code_version": self.code_version,
                "tables": [
                    {
                        "table": name,
                        "columns": list(table.columns),
                        "rows": table.rows,
                        "root": table.root,
                        "parts": [{"part": p.name.part, "rows": p.rows, "root": p.root} for p in table.parts],
                    }
                    for name, table in sorted(self.tables.items())
                ],
                "digests": dict(self.digests),
                "files": [
                    {"path": path, "bytes": size, "sha256": digest}
                    for path, (size, digest) in sorted(self.files.items())
                ],
                "root": self.root(),
            }
        )


class _MisfitError(Exception):
    """A field that is not what it has to be."""


def manifest_of(raw: bytes) -> Manifest:
    """The manifest whose bytes are `raw`.

    Raises:
        DamagedError: it is none, is spelled otherwise, or does not lead to the root it states.
    """
    content = parsed(raw, MANIFEST)
    if content.get("format") != FORMAT or content.get("version") != VERSION:
        raise DamagedError(f"{MANIFEST} is not of the format {FORMAT!r}, version {VERSION}, which this version reads")
    try:
        manifest = _read(content)
    except _MisfitError as misfit:
        raise DamagedError(f"{MANIFEST}: {misfit}") from None
    except (KeyError, TypeError):
        raise DamagedError(f"{MANIFEST}: a field is missing, or is not what it has to be") from None
    if manifest.to_json() != raw:
        raise DamagedError(f"{MANIFEST} does not lead to the root it states: it was edited, or damaged")
    if set(manifest.files) != manifest.paths:
        raise DamagedError(f"{MANIFEST} names other files than its tables have")
    return manifest


def _read(content: Mapping[str, Any]) -> Manifest:
    tables = {entry["table"]: _table(entry) for entry in _list(content, "tables")}
    digests = content["digests"]
    if not isinstance(digests, dict) or sorted(digests) != sorted(DIGESTS):
        raise _MisfitError("digests are not those a close has")
    return Manifest(
        period=_text(content, "period", _MONTH),
        code_version=_text(content, "code_version"),
        tables=tables,
        digests={name: _text(digests, name, _HEX) for name in digests},
        files={_text(e, "path"): (_count(e, "bytes"), _text(e, "sha256", _HEX)) for e in _list(content, "files")},
        schema_version=_count(content, "schema_version"),
    )


def _table(entry: Mapping[str, Any]) -> TableEntry:
    name = _text(entry, "table")
    parts = []
    for part in _list(entry, "parts"):
        if not is_part(part["part"]):
            raise _MisfitError(f"a part of {name} has no name of a part")
        parts.append(PartEntry(PartName(name, part["part"]), _count(part, "rows"), _text(part, "root", _HEX)))
    columns = entry["columns"]
    if not isinstance(columns, list) or not all(isinstance(column, str) for column in columns):
        raise _MisfitError(f"the columns of {name} are no list of names")
    return TableEntry(name, tuple(columns), _count(entry, "rows"), tuple(parts))


def _list(content: Mapping[str, Any], field: str) -> list[dict[str, Any]]:
    value = content[field]
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise _MisfitError(f"{field} is no list of objects")
    return value


def _count(content: Mapping[str, Any], field: str) -> int:
    value = content[field]
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise _MisfitError(f"{field} is no count")
    return value


def _text(content: Mapping[str, Any], field: str, pattern: re.Pattern[str] | None = None) -> str:
    value = content[field]
    if not isinstance(value, str) or (pattern is not None and not pattern.fullmatch(value)):
        raise _MisfitError(f"{field} is not written as it has to be")
    return value
