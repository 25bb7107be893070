"""Second halves of the keys of a table, as rows are read: whether they rise, and which of them come more than once.

A merge-join that is told its rows are sorted does not look again: on rows that are not, it loses matches in silence.
So every stretch is looked at here, in memory, before it is joined. What comes twice within a stretch is found at once,
what comes in two stretches or on two days is found at the end, from sorted runs whose merging costs a tenth of a
group-by. Memory does not grow with the rows: runs are put away, and looked through a range of keys at a time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from weighbridge.pipeline.reconcile.overview.packed import AT_ONCE
from weighbridge.pipeline.reconcile.overview.runs import NONE, Ints, Run, cut, merged, values_between
from weighbridge.schemas.errors import LakeError

LEAD = "attempt_lo"
# Keys merged at a time: what stays near the processor merges twice as fast.
_PIECE = 2**18


class Look(NamedTuple):
    """What was seen of the second halves of some rows.

    Attributes:
        rising: whether no row's is below that of the row before.
        each: every one once, rising.
        again: those that more than one row has, rising.
    """

    rising: bool
    each: Ints
    again: Ints


def look(rows: pl.DataFrame) -> Look:
    """Look at the second halves of rows in the order they lie in.

    Raises:
        LakeError: a row has none.
    """
    values: Ints = whole(rows)[LEAD].to_numpy()
    if bool((values[1:] > values[:-1]).all()):
        return Look(True, values, NONE)
    rising = bool((values[1:] >= values[:-1]).all())
    held = values if rising else np.sort(values)
    again = twice(held)
    return Look(rising, np.unique(held) if len(again) else held, again)


def whole(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows, each of which has a second half of a key.

    Raises:
        LakeError: a row has none.
    """
    if rows[LEAD].null_count():
        raise LakeError(f"there are rows without {LEAD}; nothing is told. Run `weighbridge validate`: it names them.")
    return rows


def twice(rising: Ints) -> Ints:
    """What comes more than once among rising numbers, each once."""
    again: Ints = np.unique(rising[1:][rising[1:] == rising[:-1]])
    return again


@dataclass(slots=True)
class Keys:
    """Second halves of one table, a run of rising ones for each stretch.

    Attributes:
        folder: where runs are put once there are too many numbers.
        name: the first part of the names of their files.
        at_once: how many numbers are held at a time, 8 bytes each.
    """

    folder: Path
    name: str
    at_once: int = AT_ONCE
    _held: list[Ints] = field(default_factory=list)
    _size: int = 0
    _runs: list[Run] = field(default_factory=list)

    def add(self, run: Ints) -> None:
        """Add the second halves of a stretch, each once and rising; stretches follow by day and key."""
        if len(run):
            self._held.append(run)
            self._size += len(run)
        if self._size > self.at_once:
            self._put_away()

    def repeated(self) -> Ints:
        """Those that came in more than one stretch, rising."""
        size = _PIECE
        if self._runs:
            self._put_away()
            size *= 8
        runs = [*self._runs, *map(Run.held, self._held)]
        if len(runs) < 2:
            return NONE
        pieces = -(-sum(run.size for run in runs) // min(self.at_once, size))
        found = [twice(merged(parts)) for parts in cut(runs, values_between(runs, pieces))]
        return np.concatenate([NONE, *found])

    def _put_away(self) -> None:
        for run in self._held:
            path = self.folder / f"keys-{self.name}-{len(self._runs):05d}.i64"
            self._runs.append(Run.put_away(run, path))
        self._held, self._size = [], 0
