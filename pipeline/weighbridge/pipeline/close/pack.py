"""A close pack that is read: its manifest, what was erased since, and its rows as tables of a lake."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import polars as pl

from weighbridge.pipeline.close import merkle
from weighbridge.pipeline.close.erasure_record import Erasure, erasure_of
from weighbridge.pipeline.close.layout import (
    CLOSED,
    FIGURES,
    MANIFEST,
    NEIGHBOURS,
    PartName,
    erasure_file,
    pin,
)
from weighbridge.pipeline.close.manifest import Manifest, TableEntry, manifest_of
from weighbridge.pipeline.close.plain import DamagedError, parsed
from weighbridge.pipeline.lake import empty


@dataclass(frozen=True)
class Pack:
    """The close of a month, in a folder of its own; nothing of it is trusted before `verify`.

    Attributes:
        folder: where it lies.
    """

    folder: Path

    def read(self, path: str) -> bytes:
        """The bytes of one of its files; a pipe or device in its place is not read.

        Raises:
            DamagedError: it is not there, or cannot be read.
        """
        if not (self.folder / path).is_file():
            raise DamagedError(f"{path} is missing")
        try:
            return (self.folder / path).read_bytes()
        except OSError as error:
            raise DamagedError(f"{path} cannot be read: {error.strerror or type(error).__name__}") from None

    @cached_property
    def manifest(self) -> Manifest:
        """Its manifest.

        Raises:
            DamagedError: it is missing, edited or damaged.
        """
        return manifest_of(self.read(MANIFEST))

    @cached_property
    def erasures(self) -> tuple[Erasure, ...]:
        """What was erased since, in order.

        Raises:
            DamagedError: a record is missing, edited or damaged, or does not follow from the one before it.
        """
        found: list[Erasure] = []
        while (self.folder / erasure_file(len(found) + 1)).exists():
            number = len(found) + 1
            record = erasure_of(self.read(erasure_file(number)), number)
            before = found[-1].digest if found else self.manifest.root()
            if record.previous != before or record.period != self.manifest.period:
                raise DamagedError(f"{erasure_file(number)} does not follow from what was there before it")
            if unknown := sorted(set(record.rows) - set(self.manifest.parts)):
                raise DamagedError(f"{erasure_file(number)} is about {'/'.join(unknown[0])}, which the pack never had")
            found.append(record)
        return tuple(found)

    @cached_property
    def erased(self) -> dict[tuple[str, str], list[int]]:
        """(table, part) -> places of the rows that are gone."""
        out: dict[tuple[str, str], set[int]] = {}
        for record in self.erasures:
            for part, places in record.rows.items():
                out.setdefault(part, set()).update(places)
        return {part: sorted(places) for part, places in out.items()}

    @cached_property
    def present(self) -> dict[tuple[str, str], PartName]:
        """(table, part) -> the part as it stands now."""
        out = {place: entry.name for place, entry in self.manifest.parts.items()}
        for record in self.erasures:
            out.update({(name.table, name.part): name for name in record.parts})
        return out

    @cached_property
    def files(self) -> dict[str, tuple[int, str]]:
        """Path -> (bytes, SHA-256) of every file that has to be there now, but manifest, seal and erasures."""
        gone = {
            path
            for record in self.erasures
            for place in record.rows
            for path in (self.manifest.parts[place].name.rows, self.manifest.parts[place].name.salts)
        }
        out = {path: held for path, held in self.manifest.files.items() if path not in gone}
        for record in self.erasures:
            out.update(record.files)
        now = {path for name in self.present.values() for path in (name.rows, name.salts, name.leaves)}
        return {path: held for path, held in out.items() if path in now or not path.startswith(("rows/", "proof/"))}

    @cached_property
    def figures(self) -> dict[str, Any]:
        """The figures of the month as they were closed, tenants by number."""
        return dict(parsed(self.read(FIGURES), FIGURES))

    def pinned(self, name: str) -> dict[str, Any]:
        """A pinned document; see `layout.PINS`."""
        return dict(parsed(self.read(pin(name)), pin(name)))

    def erased_rows(self, table: str) -> int:
        """How many rows of a table are gone."""
        return sum(len(places) for (name, _), places in self.erased.items() if name == table)

    def salts(self, place: tuple[str, str]) -> list[bytes]:
        """The salt of each row a part had; of an erased one it is nothing, of the last block there may be more.

        Raises:
            DamagedError: their file is missing.
        """
        name = self.present[place]
        raw = self.read(name.salts)
        if name.erasure:
            return merkle.split(raw, merkle.SALT_BYTES)
        blocks = merkle.split(raw, merkle.HASH_BYTES)
        return [salt for block in blocks for salt in merkle.row_salts(block, merkle.BLOCK_ROWS)]

    def scan(
        self, table: str, *, first: date | None = None, last: date | None = None, columns: Sequence[str] | None = None
    ) -> pl.LazyFrame:
        """The rows of a table, those of neighbours included; as `Lake.scan`.

        Columns that came with a later version are null, and a table the pack does not have has no rows.
        """
        entry = self.manifest.tables.get(table)
        if entry is None:
            blank = _blank(table)
            return blank if columns is None else blank.select(columns)
        frame = self._scanned(entry)
        if first is not None:
            frame = frame.filter(pl.col("day") >= first)
        if last is not None:
            frame = frame.filter(pl.col("day") <= last)
        return frame if columns is None else frame.select(columns)

    def days(self, table: str) -> list[date]:
        """The days of which the pack has rows, in order."""
        if table not in self.manifest.tables:
            return []
        held = self.scan(table, columns=["day"]).unique().collect(engine="streaming")["day"]
        return sorted(held.to_list())

    def own(self, table: str) -> pl.LazyFrame:
        """The rows of the month itself, without neighbours."""
        entry = self.manifest.tables.get(table)
        return self.scan(table) if entry is None else self._scanned(entry, neighbours=False)

    def tenants(self) -> dict[int, str]:
        """Number in the figures -> pseudonym of the tenant, where it was not erased."""
        if "tenant" not in self.manifest.tables:
            return {}
        return dict(self.own("tenant").select("number", "tenant").collect().iter_rows())

    def _scanned(self, entry: TableEntry, *, neighbours: bool = True) -> pl.LazyFrame:
        parts = [
            self.folder / self.present[entry.table, part.name.part].rows
            for part in entry.parts
            if neighbours or part.name.part != NEIGHBOURS
        ]
        if not parts:
            return _blank(entry.table)
        held = pl.scan_parquet(parts)
        types = _types(entry.table)
        lacking = [pl.lit(None, dtype=kind).alias(name) for name, kind in types.items() if name not in entry.columns]
        return held.with_columns(lacking).select(CLOSED[entry.table].names)


def _blank(table: str) -> pl.LazyFrame:
    return pl.DataFrame(schema=_types(table)).lazy()


@cache
def _types(table: str) -> pl.Schema:
    """Column -> type of a table of a pack."""
    if table not in CLOSED:
        return empty(table).schema
    blank = pl.from_arrow(CLOSED[table].schema().empty_table())
    assert isinstance(blank, pl.DataFrame)
    return blank.schema


def is_pack(folder: Path) -> bool:
    """Whether a folder looks like a close pack: it has a manifest that says so."""
    path = folder / MANIFEST
    try:
        content = json.loads(path.read_bytes()) if path.is_file() else None
    except (OSError, ValueError):
        return False
    return isinstance(content, dict) and content.get("format") == "weighbridge close"
