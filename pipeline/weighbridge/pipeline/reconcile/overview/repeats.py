"""Second halves of keys that make a plain pair doubtful: they come again in another stretch, or on another day.

A plain pair has one attempt and one report of one key, so the keys of all attempts stand for those of the reports in
them, and of reports only those are kept that were set aside. Runs rise, and each has a key once: what two of them have
is found with a table of marks (`shared`), at a fraction of what merging them takes. Memory does not grow with the rows,
for that is done a range of keys at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from weighbridge.pipeline.reconcile.overview.keys import Keys
from weighbridge.pipeline.reconcile.overview.numbers.runs import NONE, Ints, cut, each_once, merged, values_between
from weighbridge.pipeline.reconcile.overview.numbers.shared import Marks

# Keys held at a time, 96 MiB: those of a month of most hosts do not go to disk.
AT_ONCE = 12 * 2**20
# Keys looked through at a time: what stays near the processor is done sooner; fewer reads where they are on disk.
_PIECE, _PIECE_AWAY = 2**17, 2**18
Mask = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(slots=True)
class Repeats:
    """The keys of all stretches.

    Attributes:
        folder: where runs are put once there are too many numbers.
        at_once: how many numbers of each kind are held at a time, 8 bytes each.
    """

    folder: Path
    at_once: int = AT_ONCE
    _attempts: Keys = field(init=False)
    _alone: Keys = field(init=False)
    _told: Keys = field(init=False)
    _beside: Keys = field(init=False)

    def __post_init__(self) -> None:
        """Of each kind there is nothing yet."""
        names = ("attempts", "alone", "told", "beside")
        self._attempts, self._alone, self._told, self._beside = (
            Keys(self.folder, name, self.at_once) for name in names
        )

    def add(self, attempts: Sequence[Ints], alone: Ints, told: Ints) -> None:
        """Add a stretch.

        Args:
            attempts: keys of all its attempts, each once and rising, in pieces.
            alone: those of them that have no plain pair, in any order.
            told: keys of its reports that have none, and any that one of its sides has more than once, in any order.
        """
        for piece in attempts:
            self._attempts.add(piece)
        self._alone.add(each_once(alone))
        self._told.add(each_once(told))

    def add_beside(self, keys: Ints) -> None:
        """Add keys of rows that no figure is taken from, each once and rising."""
        self._beside.add(keys)

    def found(self) -> Ints:
        """Rising, each once, at least the keys

        - of attempts in two stretches, and of reports in two of which one at least was set aside;
        - of plain pairs that also are among those beside.

        A key that was set aside wherever it came may be left out, though there are rows with it beside.
        """
        sides = [keys.runs() for keys in (self._attempts, self._alone, self._told, self._beside)]
        runs = [run for side in sides for run in side]
        piece = _PIECE if all(run.path is None for run in runs) else _PIECE_AWAY
        pieces = -(-sum(run.size for run in runs) // min(self.at_once, piece))
        values = values_between(runs, pieces)
        marks = Marks()
        parts = (cut(side, values) for side in sides)
        return np.concatenate([NONE, *(_again(marks, *piece) for piece in zip(*parts, strict=True))])


def _again(
    marks: Marks, attempts: Sequence[Ints], alone: Sequence[Ints], told: Sequence[Ints], beside: Sequence[Ints]
) -> Ints:
    """What `Repeats.found` says of a range of keys: all of them, rising; from the runs of each kind."""
    lone = merged(told)
    met = lone[_among(lone, attempts)]
    found: Sequence[Ints] = (
        marks.shared(attempts),
        marks.shared(told),
        met[~_among(met, alone)],
        marks.shared_between(attempts, beside),
    )
    return each_once(np.concatenate(found))


def _among(values: Ints, runs: Sequence[Ints]) -> Mask:
    """Which of some values are in any of some rising runs."""
    met = np.zeros(len(values), np.bool_)
    for rising in runs:
        met |= rising.take(np.searchsorted(rising, values), mode="clip") == values
    return met
