"""A sealed segment: a folder with one Parquet file per table and a manifest that names the digest of each.

    <name>.segment/
        manifest.json      schema version, writer, sequence range, end, and per file: table, rows, bytes, SHA-256
        attempt.parquet    page checksums on
        usage_report.parquet
        ...

The digest of a segment is the SHA-256 of its manifest, so it pins every byte. A segment is written under a temporary
name, synced, and renamed: it is there whole or not at all. Capture and simulation write it, ingest reads it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from weighbridge.schemas.enumerations import Ended
from weighbridge.schemas.errors import ContractError
from weighbridge.schemas.identity import shown
from weighbridge.schemas.manifest import Manifest, manifest_of
from weighbridge.schemas.tables import TABLES

SUFFIX = ".segment"
MANIFEST = "manifest.json"


def sha256_file(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_segment(
    folder: Path,
    name: str,
    tables: Mapping[str, pa.Table],
    *,
    writer: str,
    end: Ended = Ended.COMPLETE,
    sequence: tuple[int, int] | None = None,
    labels: Mapping[str, str] | None = None,
    key_id: str | None = None,
) -> Path:
    """Write a sealed segment and return its path.

    Args:
        folder: where it goes; made if it is not there.
        name: the name without the suffix.
        tables: table name -> rows; columns that are missing are written as null, `segment` and `segment_row` are
            filled in by ingest.

    Raises:
        FileExistsError: a segment of that name is there already.
        ContractError: a table or column is not of the vocabulary, or a required column is missing.
    """
    target = folder / (name + SUFFIX)
    if target.exists():
        raise FileExistsError(f"{target} exists already; a sealed segment is never overwritten, choose another name")
    folder.mkdir(parents=True, exist_ok=True)
    temporary = folder / f".{name}.{os.getpid()}.tmp"
    temporary.mkdir(mode=0o700)
    try:
        files = {}
        for table, data in tables.items():
            path = temporary / f"{table}.parquet"
            shaped = conform(table, data)
            pq.write_table(shaped, path, compression="zstd", write_page_checksum=True)
            _sync(path)
            files[table] = (shaped.num_rows, path.stat().st_size, sha256_file(path))
        first, last = sequence or (None, None)
        manifest = Manifest(writer, end, files, first, last, labels, key_id)
        (temporary / MANIFEST).write_bytes(manifest.to_json())
        _sync(temporary / MANIFEST)
        _sync(temporary)
        temporary.rename(target)
        _sync(folder)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    return target


def conform(name: str, data: pa.Table) -> pa.Table:
    """`data` with exactly the columns of the table `name`, in order and type; missing nullable ones are null.

    Raises:
        ContractError: unknown table or column, a required column missing or with nulls, a type that does not fit.
    """
    table = TABLES.get(name)
    if table is None:
        raise ContractError(f"there is no table {name!r}; known are {', '.join(TABLES)}")
    unknown = [column for column in data.column_names if column not in table.names]
    if unknown:
        raise ContractError(f"{name}: unknown columns {shown(unknown)}; leave them out or rename them")
    columns = []
    for column in table.columns:
        if column.name in data.column_names:
            values = data.column(column.name)
            try:
                values = values if values.type == column.type else values.cast(column.type)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
                # Arrow's own message quotes the value, which may be text: neither it nor its chain is passed on.
                raise ContractError(
                    f"{name}.{column.name}: a value of type {values.type} does not fit {column.type}; "
                    "write the column again in that type"
                ) from None
        else:
            values = pa.chunked_array([pa.nulls(data.num_rows, column.type)])
        if not column.nullable and values.null_count:
            raise ContractError(f"{name}.{column.name} must not be null; {values.null_count} of {len(values)} rows are")
        columns.append(values)
    return pa.Table.from_arrays(columns, schema=table.schema())


def read_manifest(segment: Path) -> tuple[Manifest, str]:
    """The manifest of a sealed segment and its digest, which is the digest of the segment.

    Raises:
        ContractError: there is no manifest, it is not one, or it is of a later schema version.
    """
    path = segment / MANIFEST
    try:
        raw = path.read_bytes()
    except FileNotFoundError as error:
        raise ContractError(
            f"{segment} has no {MANIFEST}: it was never sealed, or is no segment. Seal it first, or name another path."
        ) from error
    return manifest_of(raw, str(path)), hashlib.sha256(raw).hexdigest()


def verify_segment(segment: Path) -> tuple[Manifest, str]:
    """Check every file of a sealed segment against its manifest.

    Raises:
        ContractError: names the file whose size, digest or number of rows differs, or which is missing or not in the
            manifest.
    """
    manifest, digest = read_manifest(segment)
    present = {path.name for path in segment.iterdir()} - {MANIFEST}
    expected = {f"{table}.parquet" for table in manifest.files}
    if present != expected:
        raise ContractError(
            f"{segment}: its manifest names {shown(expected)}, the folder holds {shown(present)}; "
            "nothing was read. Copy the segment again from its source."
        )
    for table, (rows, size, sha256) in manifest.files.items():
        path = segment / f"{table}.parquet"
        if path.stat().st_size != size or sha256_file(path) != sha256:
            raise ContractError(f"{path} differs from its manifest; nothing was read. Copy the segment again.")
        held = _rows_of(path)
        if held != rows:
            raise ContractError(
                f"{path} has {held} rows, its manifest says {rows}; nothing was read. Write the segment again."
            )
    return manifest, digest


def _rows_of(path: Path) -> int:
    """How many rows a Parquet file says it has."""
    try:
        return int(pq.read_metadata(path).num_rows)
    except (pa.ArrowException, OSError):
        raise ContractError(f"{path} is no Parquet file; write the segment again, nothing was read") from None


def read_table(segment: Path, table: str) -> pa.Table:
    """The rows of one table of a sealed segment, page checksums verified, in the shape of the current vocabulary."""
    data = pq.read_table(segment / f"{table}.parquet", page_checksum_verification=True)
    return conform(table, data.replace_schema_metadata(None))


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
