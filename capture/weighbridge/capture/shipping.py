"""Shipping: sealed segments go to a folder or an object store, and leave the spool only when ingest has them.

A segment is copied, read back and compared with its manifest before it gets its name. On a file system that name comes
by a rename; in an object store, where folders cannot be renamed, the manifest is written last, and a folder without a
manifest is no segment. `<digest>.ack`, beside the segment at either end or in a folder of its own, is ingest's word
that its rows are in the lake; nothing else lets a segment be deleted here.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import fs

from weighbridge.capture import holding
from weighbridge.capture.content import SUFFIX as CONTENT
from weighbridge.capture.journal import SUFFIX as JOURNAL
from weighbridge.schemas.errors import ConfigError, ContractError
from weighbridge.schemas.manifest import Manifest
from weighbridge.schemas.segment import MANIFEST, verify_segment


@dataclass(slots=True)
class Shipped:
    """What one pass did: segments copied, there already, deleted from the spool, and those that failed."""

    copied: list[str] = field(default_factory=list)
    present: list[str] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    failed: list[tuple[Path, str]] = field(default_factory=list)


def ship(spool: Path, destination: str, acks: str | None = None) -> Shipped:
    """Copy sealed segments to `destination` and delete the acknowledged ones from the spool.

    Args:
        destination: a folder, or an address such as s3://bucket/folder.
        acks: a further place of acknowledgements, likewise; it is only read. Where it is not there, nothing that is
            acknowledged only there can be deleted: that is told, and the rest is done.

    Raises:
        ConfigError: the destination, or the address of the acknowledgements, cannot be used.
    """
    system, root = _opened(destination)
    words = [(system, root)]
    out = Shipped()
    if acks is not None:
        words.append(_read_only(acks))
        if not _is(words[-1], fs.FileType.Directory) and isinstance(words[-1][0], fs.LocalFileSystem):
            out.failed.append((Path(acks), "there is no such folder of acknowledgements; ingest makes it with --acks"))
    for segment in holding.segments(spool):
        if any((spool / (segment.stem.removesuffix("-ids") + kind)).exists() for kind in _sources(segment)):
            continue  # sealed, but its source is still here: sealing has not come to its end
        try:
            manifest, digest = verify_segment(segment)
            ack = spool / f"{digest}{holding.ACK}"
            if ack.exists() or any(_is((at, f"{folder}/{ack.name}"), fs.FileType.File) for at, folder in words):
                _delete(segment)
                ack.unlink(missing_ok=True)
                out.deleted.append(segment.name)
            elif _same(system, f"{root}/{segment.name}", manifest, digest):
                out.present.append(segment.name)
            else:
                _copy(segment, system, root, manifest, digest)
                out.copied.append(segment.name)
        except ContractError as error:
            out.failed.append((segment, str(error)))
        except (OSError, pa.ArrowException) as error:
            out.failed.append((segment, f"it could not be shipped: {type(error).__name__}; run ship again"))
    return out


def _sources(segment: Path) -> tuple[str, ...]:
    return (CONTENT,) if segment.stem.endswith("-ids") else (JOURNAL,)


def _located(place: str) -> tuple[Any, str]:
    address = place if "://" in place else str(Path(place).expanduser().absolute())
    system, root = fs.FileSystem.from_uri(address)
    return system, root.rstrip("/")


def _read_only(acks: str) -> tuple[Any, str]:
    try:
        return _located(acks)
    except (OSError, pa.ArrowException, ValueError) as error:
        raise ConfigError(
            f"the acknowledgements cannot be read ({type(error).__name__}); name the folder ingest writes them to, or "
            "its address in an object store"
        ) from error


def _opened(destination: str) -> tuple[Any, str]:
    try:
        system, root = _located(destination)
        system.create_dir(root, recursive=True)
    except (OSError, pa.ArrowException, ValueError) as error:
        raise ConfigError(
            f"the destination cannot be used ({type(error).__name__}); name a folder that can be written, or an "
            "address of an object store such as s3://bucket/folder"
        ) from error
    return system, root


def _is(place: tuple[Any, str], kind: Any) -> bool:
    system, path = place
    return bool(system.get_file_info(path).type == kind)


def _same(system: Any, target: str, manifest: Manifest, digest: str) -> bool:
    """Whether the segment lies there whole. Read back byte by byte: the spool's copy is deleted on its strength."""
    wanted = {MANIFEST: digest} | {f"{table}.parquet": sha256 for table, (_, _, sha256) in manifest.files.items()}
    return all(_digest(system, f"{target}/{name}") == sha256 for name, sha256 in wanted.items())


def _digest(system: Any, path: str) -> str | None:
    if not _is((system, path), fs.FileType.File):
        return None
    sums = hashlib.sha256()
    with system.open_input_stream(path) as file:
        while chunk := file.read(1 << 20):
            sums.update(chunk)
    return sums.hexdigest()


def _copy(segment: Path, system: Any, root: str, manifest: Manifest, digest: str) -> None:
    local = isinstance(system, fs.LocalFileSystem)
    target = f"{root}/{segment.name}"
    place = f"{root}/.{segment.name}.{os.getpid()}.tmp" if local else target
    for name in (*(f"{table}.parquet" for table in manifest.files), MANIFEST):
        system.create_dir(place, recursive=True)
        with (segment / name).open("rb") as source, system.open_output_stream(f"{place}/{name}") as file:
            shutil.copyfileobj(source, file, 1 << 20)
        if local:
            _sync(Path(place) / name)
    if not _same(system, place, manifest, digest):
        raise ContractError(f"{segment.name}: what arrived differs from what was sent; run ship again")
    if local:
        Path(place).chmod(0o700)
        if Path(target).exists():
            raise ContractError(f"{target} exists and differs; move it away, then run ship again")
        _sync(Path(place))
        Path(place).rename(target)
        _sync(Path(root))


def _delete(segment: Path) -> None:
    """Out of sight first: what a cut-off deletion leaves is no damaged segment."""
    gone = segment.with_name(f".{segment.name}.gone")
    shutil.rmtree(gone, ignore_errors=True)
    segment.rename(gone)
    shutil.rmtree(gone, ignore_errors=True)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
