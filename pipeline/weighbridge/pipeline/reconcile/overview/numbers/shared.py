"""What rising runs of whole numbers have in common, without merging them.

Every number has a place in a table by its size, so a run walks through the table from one end to the other, which is
near in memory. A run leaves its mark at each of its places; whoever finds a mark there may have met an equal. Then all
numbers at such places are put beside each other: of those that are alone, with `_ROOM` places a number, one in thirty.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from weighbridge.pipeline.reconcile.overview.numbers.runs import NONE, Ints, each_once, merged, twice

_ROOM = 32
_MOST_ROOM = 2**25
# More runs than this are merged: walking through the table once for each, however short, would take longer.
_MANY = 512
# Where numbers lie so close together that more than one in so many finds a mark, merging is what is left.
_CROWDED = 8
_Bytes = np.ndarray[Any, np.dtype[np.uint8]]


@dataclass(slots=True)
class Marks:
    """A table of marks that is used again and again; 32 MiB at most."""

    _table: _Bytes = field(default_factory=lambda: np.zeros(0, np.uint8))
    _mark: int = 0

    def shared(self, runs: Sequence[Ints]) -> Ints:
        """The numbers that more than one of some runs has, each once.

        Args:
            runs: each rising, no number twice.
        """
        runs = [each for each in runs if len(each)]
        if len(runs) < 2:
            return NONE
        near = None if len(runs) > _MANY else self._near(runs, [])
        held = np.concatenate(near) if near is not None else merged(runs)
        held.sort(kind="stable")
        return twice(held)

    def shared_between(self, runs: Sequence[Ints], others: Sequence[Ints]) -> Ints:
        """The numbers of others that some runs have too, each once; runs as in `shared`."""
        runs, others = ([each for each in side if len(each)] for side in (runs, others))
        if not runs or not others:
            return NONE
        near = None if len(runs) + len(others) > _MANY else self._near(runs, others)
        if near is None:
            near = [*runs, *others]
        sides = [each_once(np.concatenate(side)) for side in (near[: len(runs)], near[len(runs) :])]
        return twice(merged(sides))

    def _near(self, runs: Sequence[Ints], others: Sequence[Ints]) -> list[Ints] | None:
        """Of each run, and of each of some others, what shares a place; null where that is too much of it.

        Args:
            runs: rising, none of them empty. Where there are no others, it is shared among them.
            others: likewise; what they share with the runs.
        """
        every = [*runs, *others]
        places = self._places(every)
        mark, met = self._marks()
        found = [NONE]
        for number, (run, place) in enumerate(zip(every, places, strict=True)):
            if not others or number >= len(runs):
                held = np.flatnonzero(self._table.take(place) == mark)
                if len(held) * _CROWDED > len(run) + _CROWDED:
                    return None
                found.append(place[held])
            if number < len(runs):
                self._table[place] = mark
        self._table[np.concatenate(found)] = met
        return [run[self._table.take(place) == met] for run, place in zip(every, places, strict=True)]

    def _places(self, runs: Sequence[Ints]) -> list[Ints]:
        """Where the numbers of each run have their places."""
        size = sum(map(len, runs))
        least, most = min(int(run[0]) for run in runs), max(int(run[-1]) for run in runs)
        room = min(_MOST_ROOM, 1 << (size * _ROOM).bit_length())
        if len(self._table) < room:
            self._table, self._mark = np.zeros(room, np.uint8), 0
        shift = np.uint64(max(0, (most - least).bit_length() - (room.bit_length() - 1)))
        # As numbers without a sign, for the distance of the two ends has 64 bits.
        origin = np.int64(least).view(np.uint64)
        return [((run.view(np.uint64) - origin) >> shift).view(np.int64) for run in runs]

    def _marks(self) -> tuple[int, int]:
        """Two marks that nobody left yet."""
        if self._mark + 2 > np.iinfo(np.uint8).max:
            self._table.fill(0)
            self._mark = 0
        self._mark += 2
        return self._mark - 1, self._mark
