"""Sums of many rows in groups that are numbers, in one pass, for rows of which every figure is known.

Groups are places of a table, and floats add up whole numbers exactly while sums stay below 2^53: until that may no
longer be so, nothing has to be looked at twice.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from weighbridge.pipeline.reconcile.overview.numbers.runs import Ints
from weighbridge.pipeline.reconcile.overview.pairs import FIGURES
from weighbridge.pipeline.reconcile.overview.totals.percentiles import SHIFT

# Whole numbers below this are exact as floats.
_EXACT = 2**53
# Rows at a time: what stays near the processor.
_NEAR = 2**16
# A row and its input are added up as one number: a row counts `_ROW`, of which inputs never come to one before the two
# are taken apart; so many rows come to less than `_EXACT`.
_ROW = 2**34
_MOST_ROWS = _EXACT // _ROW - 1
_INPUT, _OUTPUT, *_DIFFERENCES = FIGURES
_Floats = np.ndarray[Any, np.dtype[np.float64]]


class Few(NamedTuple):
    """Numbers that are nought but in some places, rising, and what they are there."""

    places: Ints
    values: Ints

    @classmethod
    def of(cls, numbers: Ints) -> Few:
        """The places where they are not nought."""
        places = np.flatnonzero(numbers != 0)
        return cls(places, numbers[places])

    def whole(self, size: int) -> Ints:
        """All of them."""
        out = np.zeros(size, np.int64)
        out[self.places] = self.values
        return out


class Plain(NamedTuple):
    """Rows of which every figure is known: a number of a group, not below nought, and `FIGURES`."""

    group: Ints
    input: Ints
    output: Ints
    input_difference: Few
    output_difference: Few

    def frame(self) -> pl.DataFrame:
        """As `Packed.add` takes them."""
        size = len(self.group)
        return pl.DataFrame({n: v.whole(size) if isinstance(v, Few) else v for n, v in self._asdict().items()})

    def largest(self) -> int:
        """The largest figure, either way."""
        held = (self.input, self.output, self.input_difference.values, self.output_difference.values)
        return max((max(-int(each.min()), int(each.max())) for each in held if len(each)), default=0)


@dataclass(slots=True)
class Summed:
    """What rows of each group come to: how many they are, and the sums of `FIGURES`."""

    _sums: dict[str, _Floats] = field(default_factory=lambda: {name: np.zeros(0) for name in ("attempts", *FIGURES)})
    # Rows and inputs that were not taken apart yet, how many rows these are, and what their inputs come to at most.
    _both: _Floats = field(default_factory=lambda: np.zeros(0))
    _rows: int = 0
    _inputs: int = 0
    # No sum is beyond this, either way.
    _most: int = 0

    def add(self, rows: Plain) -> bool:
        """Add rows, at least one; false, and nothing is added, where sums might no longer be exact with them."""
        size, largest = len(rows.group), rows.largest()
        most = self._most + max(1, largest) * size
        if largest >= SHIFT or most >= _EXACT:
            return False
        self._most = most
        self._make_room(int(rows.group.max()) + 1)
        # Never fewer rows at a time than there are groups, for all of these are looked at each time.
        step = max(_NEAR, len(self._both))
        for start in range(0, size, step):
            near = slice(start, start + step)
            self._add_near(rows.group[near], rows.input[near], rows.output[near], largest)
        for name, few in zip(_DIFFERENCES, (rows.input_difference, rows.output_difference), strict=True):
            np.add.at(self._sums[name], rows.group[few.places], few.values.astype(np.float64))
        return True

    def drained(self) -> dict[str, Ints]:
        """`group`, `attempts` and `FIGURES` of the groups that have rows; from then on there are none."""
        self._take_apart()
        met = np.flatnonzero(self._sums["attempts"])
        out = {"group": met, **{name: sums[met].astype(np.int64) for name, sums in self._sums.items()}}
        for sums in self._sums.values():
            sums.fill(0)
        self._most = 0
        return out

    def _add_near(self, group: Ints, given: Ints, output: Ints, largest: int) -> None:
        size, rows, inputs = len(self._both), len(group), largest * len(group)
        self._sums[_OUTPUT] += np.bincount(group, output, size)
        if inputs >= _ROW or rows >= _MOST_ROWS or int(given.min()) < 0:
            self._sums["attempts"] += np.bincount(group, minlength=size)
            self._sums[_INPUT] += np.bincount(group, given, size)
            return
        if self._inputs + inputs >= _ROW or self._rows + rows >= _MOST_ROWS:
            self._take_apart()
        self._both += np.bincount(group, given + float(_ROW), size)
        self._rows, self._inputs = self._rows + rows, self._inputs + inputs

    def _take_apart(self) -> None:
        rows = np.floor(self._both / _ROW)
        self._sums["attempts"] += rows
        self._sums[_INPUT] += self._both - rows * _ROW
        self._both.fill(0)
        self._rows = self._inputs = 0

    def _make_room(self, size: int) -> None:
        """Places for so many groups at least."""
        more = max(size, 2 * len(self._both)) - len(self._both) if size > len(self._both) else 0
        if more:
            self._sums = {name: np.concatenate([sums, np.zeros(more)]) for name, sums in self._sums.items()}
            self._both = np.concatenate([self._both, np.zeros(more)])
