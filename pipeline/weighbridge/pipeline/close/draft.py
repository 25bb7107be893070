"""Writing a close pack: under a name of its own until all of it is on the disk, then renamed into its place."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from weighbridge.pipeline.close import merkle
from weighbridge.pipeline.close.layout import MANIFEST, NEIGHBOURS, PartName
from weighbridge.pipeline.close.manifest import PartEntry, TableEntry
from weighbridge.pipeline.close.plain import sha256_of
from weighbridge.pipeline.lake import row_bytes
from weighbridge.pipeline.lake.failure import told
from weighbridge.schemas.table import Table

UNENTERED = ".unentered-"
_DRAFT, _OLD = ".draft", ".old"


@dataclass(slots=True)
class Draft:
    """A pack that is being written.

    Attributes:
        folder: where it is written.
        period: the month.
        key: what the salts are made from; see `merkle.block_salt`.
        files: path -> (bytes, SHA-256) of what was written so far.
        parts: table -> its parts so far.
    """

    folder: Path
    period: str
    key: bytes
    files: dict[str, tuple[int, str]] = field(default_factory=dict)
    parts: dict[str, list[PartEntry]] = field(default_factory=dict)

    def write(self, path: str, raw: bytes, *, listed: bool = True) -> None:
        """Write a file and force it to the disk; `listed` files are named in the manifest."""
        written = write_file(self.folder / path, raw)
        if listed:
            self.files[path] = written

    def add(self, name: PartName, table: Table, rows: pl.DataFrame) -> None:
        """Write a part of a table with its salts and leaves; the rows come in order."""
        data = arrow(table, rows)
        self.files[name.rows] = write_rows(self.folder / name.rows, data)
        blocks = -(-data.num_rows // merkle.BLOCK_ROWS)
        salts = [merkle.block_salt(self.key, self.period, name.table, name.part, number) for number in range(blocks)]
        hashes = b"".join(merkle.leaves(salts, row_bytes.rows(table, data)))
        self.write(name.salts, b"".join(salts))
        self.write(name.leaves, hashes)
        entry = PartEntry(name, data.num_rows, merkle.root(merkle.block_roots(hashes)).hex())
        self.parts.setdefault(name.table, []).append(entry)

    def table(self, table: Table) -> TableEntry:
        """What the manifest says about a table whose parts are all written."""
        parts = tuple(self.parts[table.name])
        own = sum(part.rows for part in parts if part.name.part != NEIGHBOURS)
        return TableEntry(table.name, table.names, own, parts)


@contextmanager
def draft(packs: Path, period: str, key: bytes) -> Iterator[Draft]:
    """A draft of the pack of a month; at the end of the block it takes its place, and is taken away if that fails.

    What an earlier close of this month left half-written is removed first; the caller is the only one that closes it.

    Raises:
        LakeError: it cannot be written, or the disk is full; nothing is left of it.
    """
    target = packs / period
    folder = packs / f".{period}.{os.getpid()}{_DRAFT}"
    with told("writing the close pack", str(packs)):
        packs.mkdir(mode=0o700, parents=True, exist_ok=True)
        _sweep(packs, period)
        folder.mkdir(mode=0o700)
        try:
            yield Draft(folder, period, key)
            for inner in sorted(path for path in folder.rglob("*") if path.is_dir()):
                sync(inner)
            sync(folder)
            _put(folder, target)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise


def _put(folder: Path, target: Path) -> None:
    """Rename a finished draft into its place.

    A pack that stands there already was never entered in this lake: a close was cut short, or the lake was restored
    from a backup. The same one gives way; another one is evidence, and is kept beside it.
    """
    old = target.with_name(f"{folder.name.removesuffix(_DRAFT)}{_OLD}")
    if target.exists():
        same = (target / MANIFEST).is_file() and sha256_of(target / MANIFEST) == sha256_of(folder / MANIFEST)
        target.rename(old if same else _free(target))
    folder.rename(target)
    sync(target.parent)
    shutil.rmtree(old, ignore_errors=True)


def _free(target: Path) -> Path:
    """A name beside the pack of a month that nothing has yet."""
    number = 1
    while (found := target.with_name(f"{target.name}{UNENTERED}{number}")).exists():
        number += 1
    return found


def _sweep(packs: Path, period: str) -> None:
    for left in packs.glob(f".{period}.*"):
        if left.name.endswith((_DRAFT, _OLD)):
            shutil.rmtree(left)


def arrow(table: Table, rows: pl.DataFrame) -> pa.Table:
    """Rows as Arrow, in the types of their table."""
    schema = pa.schema([pa.field(column.name, column.type) for column in table.columns])
    return rows.select(table.names).to_arrow(compat_level=pl.CompatLevel.oldest()).cast(schema)


def write_rows(path: Path, data: pa.Table) -> tuple[int, str]:
    """Write rows as Parquet with page checksums and force them to the disk; (bytes, SHA-256)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(data, path, compression="zstd", write_page_checksum=True)
    sync(path)
    return path.stat().st_size, sha256_of(path)


def write_file(path: Path, raw: bytes) -> tuple[int, str]:
    """Write a file and force it to the disk; (bytes, SHA-256)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(raw)
    sync(path)
    return len(raw), sha256_of(path)


def sync(path: Path) -> None:
    """Force a file or folder to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
