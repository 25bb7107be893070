"""Rows by bucket, in memory while they are few and on disk from then on.

A bucket is the low six bits of an attempt's key, so all rows of a key are in one bucket, whatever table, day or order
they come from: each bucket is worked on alone, in a sixty-fourth of the memory, and run again alone where it fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import polars as pl

from weighbridge.schemas.errors import Terminal
from weighbridge.schemas.identity import BUCKETS

# Rows held in memory before they go to disk.
HELD = 1_000_000
TRIES = 3
_Made = TypeVar("_Made")


@dataclass(slots=True)
class Spill:
    """Rows of several tables by bucket.

    Attributes:
        folder: where they go once there are many.
        held: how many are kept in memory before that.
    """

    folder: Path
    held: int = HELD
    _frames: dict[str, list[pl.DataFrame]] = field(default_factory=dict)
    _empty: dict[str, pl.DataFrame] = field(default_factory=dict)
    _size: int = 0
    _rows: dict[int, int] = field(default_factory=dict)
    _files: dict[tuple[str, int], list[Path]] = field(default_factory=dict)

    def add(self, name: str, rows: pl.DataFrame) -> None:
        """Add rows with `attempt_lo`; all rows of a name have the same columns."""
        self._empty.setdefault(name, rows.clear())
        if rows.height:
            self._frames.setdefault(name, []).append(rows)
            self._size += rows.height
        if self._size >= self.held:
            self._put_away()

    def buckets(self, *names: str) -> Iterator[dict[str, pl.DataFrame]]:
        """The rows of each name, as many buckets at a time as may be held; all at once where none went to disk.

        Names that nothing was added to are left out, and so are buckets without rows.
        """
        names = tuple(name for name in names if name in self._empty)
        if not self._files:
            rows = {name: pl.concat([self._empty[name], *self._frames.get(name, [])]) for name in names}
            if any(each.height for each in rows.values()):
                yield rows
            return
        self._put_away()
        for together in self._together():
            yield {name: self._read(name, together) for name in names}

    def _together(self) -> Iterator[list[int]]:
        """Buckets with rows, as many of them as may be held together."""
        held: list[int] = []
        size = 0
        for bucket, rows in sorted(self._rows.items()):
            if held and size + rows > self.held:
                yield held
                held, size = [], 0
            held.append(bucket)
            size += rows
        if held:
            yield held

    def _read(self, name: str, buckets: list[int]) -> pl.DataFrame:
        held = [pl.read_ipc(path) for bucket in buckets for path in self._files.get((name, bucket), [])]
        return pl.concat([self._empty[name], *held])

    def _put_away(self) -> None:
        for name, frames in self._frames.items():
            whole = pl.concat(frames).with_columns(_bucket=pl.col("attempt_lo") & (BUCKETS - 1))
            for (bucket,), rows in whole.partition_by("_bucket", as_dict=True, include_key=False).items():
                files = self._files.setdefault((name, bucket), [])
                self._rows[bucket] = self._rows.get(bucket, 0) + rows.height
                path = self.folder / f"{name}-{bucket:02d}-{len(files):05d}.arrow"
                rows.write_ipc(path)
                files.append(path)
        self._frames, self._size = {}, 0


def tried(work: Callable[[], _Made]) -> _Made:
    """What a piece of work gives; where it fails for a reason that may pass, that piece alone is done once more."""
    for _ in range(TRIES - 1):
        try:
            return work()
        except Exception as error:
            if isinstance(error, (Terminal, MemoryError, AssertionError, TypeError)):
                raise
    return work()
