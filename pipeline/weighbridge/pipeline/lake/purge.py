"""Taking the past of a table away: what no row of today stands in is not left on disk.

A commit only takes files out of the table. Their bytes stay until somebody removes them, and the log keeps the least
and greatest keys of every file there ever was. Here the present version is written down whole (a checkpoint), then the
log before it goes, then every data file that the present version does not name. Cut off anywhere, the table is as it
was, and doing it again finishes it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from deltalake import DeltaTable
from pyarrow import fs

from weighbridge.pipeline.lake.place import Place

LOG = "_delta_log"
_ENTRY = re.compile(r"(\d{20})\.(?:json|crc|.*checkpoint.*)")
_DRAFT = re.compile(r"_commit_.*|.*\.tmp")


@dataclass(frozen=True, slots=True)
class Purged:
    """What was removed: data files, and entries of the log."""

    files: int
    entries: int


def purge(place: Place, uri: str, opened: DeltaTable, named: Iterable[str]) -> Purged:
    """Remove everything in a table's folder that its present version does not need; the lake's lock is held.

    Readers that opened an earlier version before lose its files: their next read fails, and reading anew succeeds.

    Args:
        place: the lake.
        uri: where the table lies.
        opened: the table at its present version.
        named: paths of the data files of that version, relative to the table's folder.
    """
    store, root = place.store_of(uri)
    present = opened.version()
    checkpoint = f"{root}/{LOG}/{present:020d}.checkpoint.parquet"
    if not _is_file(store, checkpoint):
        opened.create_checkpoint()
    if place.local:
        _sync(Path(checkpoint), Path(checkpoint).parent)
    held = {f"{root}/{path}" for path in named}
    listed = [info.path for info in store.get_file_info(fs.FileSelector(root, recursive=True)) if info.is_file]
    log = f"{root}/{LOG}/"
    entries = [path for path in listed if path.startswith(log) and _is_past(path.removeprefix(log), present)]
    files = [path for path in listed if not path.startswith(log) and path not in held]
    for path in (*entries, *files):
        store.delete_file(path)
    if place.local:
        _drop_empty(Path(root))
    return Purged(len(files), len(entries))


def _is_file(store: fs.FileSystem, path: str) -> bool:
    return bool(store.get_file_info(path).is_file)


def _is_past(name: str, present: int) -> bool:
    found = _ENTRY.fullmatch(name)
    return bool(_DRAFT.fullmatch(name)) if found is None else int(found.group(1)) < present


def _drop_empty(root: Path) -> None:
    """Folders of days that have no rows any more."""
    for folder in root.glob("day=*"):
        if not any(folder.iterdir()):
            folder.rmdir()


def _sync(*paths: Path) -> None:
    for path in paths:
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
