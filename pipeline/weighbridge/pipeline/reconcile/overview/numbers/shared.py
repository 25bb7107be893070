"""What rising runs of whole numbers have in common, without merging them.

Every number has a place in a table by its size, so a run walks through the table from one end to the other, which is
near in memory. A run leaves its mark at each of its places; whoever finds a mark there may have met an equal, and only
then is looked for among the earlier runs. With `_ROOM` places a number that is one in so many of those that are alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from weighbridge.pipeline.reconcile.overview.numbers.runs import NONE, Ints, merged

_ROOM = 32
_MOST_ROOM = 2**25
# More runs than this are merged: walking through the table once for each, however short, would take longer.
_MANY = 64
# Where numbers lie so close together that more than one in so many finds a mark, merging is what is left.
_CROWDED = 8
_Bytes = np.ndarray[Any, np.dtype[np.uint8]]


@dataclass(slots=True)
class Marks:
    """A table of marks that is used again and again; 32 MiB at most."""

    _table: _Bytes = field(default_factory=lambda: np.zeros(0, np.uint8))
    _mark: int = 0

    def shared(self, runs: Sequence[Ints]) -> Ints:
        """The numbers that more than one of some runs has, in any order, some perhaps told twice.

        Args:
            runs: each rising, no number twice.
        """
        runs = [each for each in runs if len(each)]
        if len(runs) < 2:
            return NONE
        found = None if len(runs) > _MANY else self._met(runs, range(1, len(runs)))
        if found is None:
            held = merged(runs)
            found = held[1:][held[1:] == held[:-1]]
        return found

    def shared_between(self, runs: Sequence[Ints], others: Sequence[Ints]) -> Ints:
        """The numbers of others that some runs have too, in any order, some perhaps told twice; runs as in `shared`."""
        runs, others = ([each for each in side if len(each)] for side in (runs, others))
        if not runs or not others:
            return NONE
        found = None if len(runs) + len(others) > _MANY else self._met([*runs, *others], range(len(runs)), others=True)
        return np.intersect1d(merged(runs), merged(others)) if found is None else found

    def _met(self, runs: Sequence[Ints], looking: range, *, others: bool = False) -> Ints | None:
        """Numbers of runs that one of the runs before it has too; null where too many have their place in common.

        Args:
            runs: the runs, none of them empty.
            looking: the runs that look for earlier ones; with `others` the first so many leave marks and look for
                none, and all after them look and leave none.
        """
        size = sum(map(len, runs))
        places = self._places(runs, size)
        mark, found = self._next(), [NONE]
        for number, (run, place) in enumerate(zip(runs, places, strict=True)):
            first = others and number in looking
            if not first and (others or number in looking):
                held = np.flatnonzero(self._table.take(place) == mark)
                if len(held) * _CROWDED > len(run) + _CROWDED:
                    return None
                wanted = run[held]
                earlier = runs[: len(looking)] if others else runs[:number]
                for other in earlier if len(wanted) else ():
                    near = other.take(np.searchsorted(other, wanted), mode="clip")
                    found.append(wanted[near == wanted])
            if first or not others:
                self._table[place] = mark
        return np.concatenate(found)

    def _places(self, runs: Sequence[Ints], size: int) -> list[Ints]:
        """Where the numbers of each run have their places."""
        least, most = min(int(run[0]) for run in runs), max(int(run[-1]) for run in runs)
        room = min(_MOST_ROOM, 1 << (size * _ROOM).bit_length())
        if len(self._table) < room:
            self._table, self._mark = np.zeros(room, np.uint8), 0
        shift = np.uint64(max(0, (most - least).bit_length() - (room.bit_length() - 1)))
        # As numbers without a sign, for the distance of the two ends has 64 bits.
        origin = np.int64(least).view(np.uint64)
        return [((run.view(np.uint64) - origin) >> shift).view(np.int64) for run in runs]

    def _next(self) -> int:
        """A mark that nobody left yet."""
        if self._mark == np.iinfo(np.uint8).max:
            self._table.fill(0)
            self._mark = 0
        self._mark += 1
        return self._mark
