"""Second halves of the keys of a table, as rows are read: in order, and which of them come more than once.

What comes twice within some rows is found at once; for what comes in two stretches (`repeats`) rising runs are kept, in
memory while they are few and on disk from then on.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import polars as pl

from weighbridge.pipeline.reconcile.overview.numbers.runs import NONE, Ints, Run, each_once, in_order, twice
from weighbridge.schemas.errors import LakeError

LEAD = "attempt_lo"
# Numbers held where others lie on disk already, 16 MiB.
FEW = 2**21


class Look(NamedTuple):
    """What was seen of the second halves of some rows.

    Attributes:
        each: every one once, rising.
        again: those that more than one row has, rising.
    """

    each: Ints
    again: Ints


def look(rows: pl.DataFrame) -> Look:
    """Look at the second halves of rows in the order they lie in.

    Raises:
        LakeError: a row has none.
    """
    values: Ints = whole(rows)[LEAD].to_numpy()
    if bool((values[1:] > values[:-1]).all()):
        return Look(values, NONE)
    rising = bool((values[1:] >= values[:-1]).all())
    held = values if rising else in_order(values)
    again = twice(held)
    return Look(each_once(held) if len(again) else held, again)


def whole(rows: pl.DataFrame, lead: str = LEAD) -> pl.DataFrame:
    """The rows, each of which has a second half of a key, whatever it is called there.

    Raises:
        LakeError: a row has none.
    """
    if rows[lead].null_count():
        raise LakeError(f"there are rows without {LEAD}; nothing is told. Run `weighbridge validate`: it names them.")
    return rows


@dataclass(slots=True)
class Keys:
    """Rising second halves of keys, in runs.

    Attributes:
        folder: where runs are put once there are too many numbers.
        name: the first part of the names of their files.
        at_once: how many numbers are held at a time, 8 bytes each, before any of them go to disk.
        few: how many are, from then on.
    """

    folder: Path
    name: str
    at_once: int
    few: int = FEW
    _held: list[Ints] = field(default_factory=list)
    _size: int = 0
    _away: list[Run] = field(default_factory=list)
    # The last number that went to disk.
    _last: int | None = None

    def add(self, rising: Ints) -> None:
        """Add second halves, each once and rising."""
        if len(rising):
            self._held.append(rising)
            self._size += len(rising)
        if self._size > (min(self.few, self.at_once) if self._away else self.at_once):
            self._put_away()

    def runs(self) -> list[Run]:
        """All of them: on disk where some are there already, so that memory is free for their merging."""
        if self._away:
            self._put_away()
        return [*self._away, *map(Run.held, self._held)]

    def _put_away(self) -> None:
        for rising in self._held:
            # The stretches of a day rise one after the other, and are one run.
            if self._last is not None and self._last < rising[0]:
                self._away[-1] = self._away[-1].longer(rising)
            else:
                path = self.folder / f"keys-{self.name}-{len(self._away):05d}.i64"
                self._away.append(Run.put_away(rising, path))
            self._last = int(rising[-1])
        self._held, self._size = [], 0
