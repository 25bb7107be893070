"""Tables of a few rows, held in memory for as long as their files lie on disk as they did.

A night looks at each table dozens of times. Where it has a few rows, planning to read its files costs a hundred times
what reading them does, so they are read whole once and every later look is at the rows. Each look asks the file system
for the size and time of every file, so a file that was changed, lost or put back is read again.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import polars as pl
from deltalake import DeltaTable

# Up to so many rows in so many files a table is small.
ROWS = 5_000
FILES = 64
# Inode, size and times of each file: of its last change, which whoever puts it back may set, and of the last change of
# that, which nobody can.
Look = tuple[tuple[int, int, int, int], ...]


@dataclass(frozen=True, slots=True)
class _Held:
    opened: DeltaTable
    paths: tuple[Path, ...]
    look: Look
    rows: pl.DataFrame | None


class SmallTables:
    """The small tables of one local lake that were looked at; safe to share between threads."""

    def __init__(self) -> None:
        """Hold no table yet."""
        self._held: dict[Path, _Held] = {}
        self._turn = threading.Lock()

    def rows(
        self, folder: Path, opened: DeltaTable, files: pl.DataFrame, reading: Callable[[], pl.DataFrame]
    ) -> pl.DataFrame | None:
        """All rows of the table in `folder`; null where it is not small, or cannot be read just now.

        Args:
            folder: where it lies.
            opened: its version; another one is another object.
            files: path, size and rows of its files.
            reading: reads it.
        """
        with self._turn:
            held = self._held.get(folder)
        if held is None or held.opened is not opened:
            held = _Held(opened, _paths(folder, files), (), None)
        if not held.paths:
            with self._turn:
                self._held[folder] = held
            return None
        look = _look(held.paths)
        if look is None or (held.rows is not None and held.look == look):
            return held.rows if look is not None else None
        # An engine that meets a file which was cut short gives up with words of its own: such a file is not read here.
        if [size for _, size, *_ in look] != files["size"].to_list():
            return None
        try:
            rows = reading()
        except (Exception, pl.exceptions.PanicException):  # noqa: BLE001
            return None  # whoever collects the scan is told what is wrong with the files
        with self._turn:
            self._held[folder] = _Held(opened, held.paths, look, rows)
        return rows

    def forget(self, folder: Path) -> None:
        """Hold the table in `folder` no longer."""
        with self._turn:
            self._held.pop(folder, None)


def _paths(folder: Path, files: pl.DataFrame) -> tuple[Path, ...]:
    """The files of a small table; none where it is not small, or does not tell how many rows it has."""
    if files.height > FILES or files["rows"].null_count() or int(files["rows"].sum()) > ROWS:
        return ()
    return tuple(folder / path for path in files["path"])


def _look(paths: tuple[Path, ...]) -> Look | None:
    try:
        found = [os.stat(path) for path in paths]  # noqa: PTH116 - asked very often
    except OSError:
        return None
    return tuple((each.st_ino, each.st_size, each.st_mtime_ns, each.st_ctime_ns) for each in found)
