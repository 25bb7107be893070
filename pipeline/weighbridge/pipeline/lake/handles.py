"""Opened tables, kept while their logs lie on disk as they did.

Opening a Delta table reads its whole log, some 8 ms for a hundred days; a night or an erasure looks at each table
dozens of times between two commits. What a log looks like is asked of the file system every time, so a commit of
another process, a purge and a restored backup are all seen.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import polars as pl
from deltalake import DeltaTable

_LOG = "_delta_log"
# Name, inode, size and times of each file of a log (see `small`).
Look = frozenset[tuple[str, int, int, int, int]]


class Handles:
    """The tables of one local lake that were opened; safe to share between threads."""

    def __init__(self) -> None:
        """Know no table yet."""
        self._kept: dict[Path, tuple[Look, DeltaTable | None]] = {}
        self._told: dict[Path, tuple[DeltaTable, pl.DataFrame]] = {}
        self._turn = threading.Lock()

    def get(self, folder: Path, opening: Callable[[], DeltaTable | None]) -> DeltaTable | None:
        """The table in `folder` as its log is now, opened anew only where the log changed; null where there is none."""
        look = _look(folder / _LOG)
        if look is _NO_LOG:
            return None
        with self._turn:
            kept = self._kept.get(folder)
        if kept is not None and look is not None and kept[0] == look:
            return kept[1]
        # The look comes before the opening: a commit in between makes the next look differ, never this one lie.
        opened = opening()
        if look is not None:
            with self._turn:
                self._kept[folder] = (look, opened)
        return opened

    def keep(self, folder: Path, committed: DeltaTable) -> None:
        """The table in `folder` after a commit through this very handle, which commits no more.

        Where somebody else committed since, it is not the last version any more, and the next one who asks opens it.
        """
        look = _look(folder / _LOG)
        committed.update_incremental()
        if look is not None and _last(look) == committed.version():
            with self._turn:
                self._kept[folder] = (look, committed)

    def told(self, folder: Path, opened: DeltaTable, asking: Callable[[], pl.DataFrame]) -> pl.DataFrame:
        """What the version of the table in `folder` that was opened says of its files, asked once."""
        with self._turn:
            known = self._told.get(folder)
        if known is None or known[0] is not opened:
            known = opened, asking()
            with self._turn:
                self._told[folder] = known
        return known[1]


def _last(look: Look) -> int | None:
    """The number of the last commit of a log."""
    return max((int(name[:20]) for name, *_ in look if name.endswith(".json") and name[:20].isdigit()), default=None)


_NO_LOG: Look = frozenset({("", 0, 0, 0, 0)})


def _look(log: Path) -> Look | None:
    """What a log looks like; null where that cannot be told just now, as while another process renames a commit."""
    try:
        listed = os.scandir(log)
    except FileNotFoundError:
        return _NO_LOG
    except OSError:
        return None
    try:
        with listed as entries:
            found = []
            for entry in entries:
                about = entry.stat(follow_symlinks=False)
                found.append((entry.name, about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns))
            return frozenset(found)
    except OSError:
        return None
