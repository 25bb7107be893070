"""Columns of whole numbers of one side of a stretch, taken a few rows at a time.

A table that was read lies in memory in the pieces its file has. Rows that follow one another are looked at where they
lie; rows here and there are fetched from a copy that has all columns of a row side by side, for one of them costs as
much to fetch as all.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from weighbridge.pipeline.reconcile.overview.numbers.runs import Ints

# Rows that are put side by side at a time: what stays near the processor.
_NEAR = 2**15
Mask = np.ndarray[Any, np.dtype[np.bool_]]


class Column(NamedTuple):
    """Values, nought where they are unknown; and which are known, null where all are."""

    values: Ints
    known: Mask | None

    def where(self, mask: Mask | None) -> Column:
        """The rows a mask names; all of them where it is null."""
        if mask is None:
            return self
        return Column(self.values[mask], None if self.known is None else self.known[mask])


@dataclass(slots=True)
class Columns:
    """Some columns of a table.

    Attributes:
        names: their names.
    """

    rows: pl.DataFrame
    names: Sequence[str]
    _held: dict[str, tuple[list[Column], list[int]]] = field(init=False)
    _beside: Ints | None = None
    _known: dict[str, Mask] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Look at the columns where they lie."""
        self._held = {name: _lying(self.rows[name]) for name in self.names}

    def between(self, start: int, end: int) -> dict[str, Column]:
        """The rows from one to before another."""
        return {name: _between(*held, start, end) for name, held in self._held.items()}

    def at(self, places: Ints) -> dict[str, Column]:
        """The rows at some places."""
        if self._beside is None:
            self._beside = self._side_by_side()
        taken = np.ascontiguousarray(self._beside.take(places, axis=0).T)
        known = {name: mask.take(places) for name, mask in self._known.items()}
        return {name: Column(taken[number], known.get(name)) for number, name in enumerate(self.names)}

    def _side_by_side(self) -> Ints:
        out = np.empty((self.rows.height, len(self.names)), np.int64)
        for start in range(0, len(out), _NEAR):
            for number, column in enumerate(self.between(start, min(start + _NEAR, len(out))).values()):
                out[start : start + _NEAR, number] = column.values
        for name, (pieces, _) in self._held.items():
            if any(piece.known is not None for piece in pieces):
                whole = _between(*self._held[name], 0, len(out)).known
                assert whole is not None
                self._known[name] = whole
        return out


@dataclass(slots=True)
class Rising:
    """Whole numbers as they lie in memory, in pieces; most of this holds only where they `rise`.

    Attributes:
        pieces: the pieces, none of them empty.
    """

    pieces: list[Ints]
    _ends: list[int] = field(init=False)

    def __post_init__(self) -> None:
        """Look where the pieces end."""
        self._ends = list(accumulate(map(len, self.pieces)))

    @classmethod
    def of(cls, values: pl.Series) -> Rising:
        """A column without nulls."""
        return cls([piece.to_numpy() for piece in values.get_chunks() if len(piece)])

    @property
    def size(self) -> int:
        """How many there are."""
        return self._ends[-1] if self._ends else 0

    def rise(self) -> bool:
        """Whether each is above the one before."""
        inside = all(bool((piece[1:] > piece[:-1]).all()) for piece in self.pieces)
        return inside and all(one[-1] < other[0] for one, other in pairwise(self.pieces))

    def starts(self, size: int) -> list[int]:
        """Where parts of at most so many rows begin, none of which reaches over the end of a piece."""
        return [at for start, end in pairwise([0, *self._ends]) for at in range(start, end, size)]

    def places(self, values: Sequence[int]) -> list[int]:
        """How many of them, which rise, are below each value."""
        lasts = [int(piece[-1]) for piece in self.pieces]
        return [self._place(value, bisect_left(lasts, value)) for value in values]

    def between(self, start: int, end: int) -> Ints:
        """Those from one place to before another."""
        return _between([Column(piece, None) for piece in self.pieces], self._ends, start, end).values

    def _place(self, value: int, piece: int) -> int:
        if piece == len(self.pieces):
            return self.size
        before = self._ends[piece - 1] if piece else 0
        return before + int(np.searchsorted(self.pieces[piece], value))


def _lying(values: pl.Series) -> tuple[list[Column], list[int]]:
    """The pieces of a column, and where each of them ends."""
    out = [_column(piece) for piece in values.get_chunks() if len(piece)]
    return out, list(accumulate(len(piece.values) for piece in out))


def _column(values: pl.Series) -> Column:
    if not values.null_count():
        return Column(values.to_numpy(), None)
    return Column(values.fill_null(0).to_numpy(), values.is_not_null().to_numpy())


def _between(held: list[Column], ends: list[int], start: int, end: int) -> Column:
    if start >= end:
        return Column(np.zeros(0, np.int64), None)
    first = bisect_left(ends, start + 1)
    before = ends[first - 1] if first else 0
    if end <= ends[first]:
        return _part(held[first], start - before, end - before)
    last = bisect_left(ends, end)
    parts = [
        _part(held[first], start - before, None),
        *held[first + 1 : last],
        _part(held[last], 0, end - ends[last - 1]),
    ]
    values = np.concatenate([part.values for part in parts])
    if all(part.known is None for part in parts):
        return Column(values, None)
    known = [np.ones(len(part.values), np.bool_) if part.known is None else part.known for part in parts]
    return Column(values, np.concatenate(known))


def _part(column: Column, start: int, end: int | None) -> Column:
    return Column(column.values[start:end], None if column.known is None else column.known[start:end])
