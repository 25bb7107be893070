"""Rows of both sides beside each other: where they follow one another as they lie, and where they lie anywhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from weighbridge.pipeline.reconcile.overview.numbers.columns import Column, Mask
from weighbridge.pipeline.reconcile.overview.numbers.runs import Ints


class Beside(Protocol):
    """Pairs of rows that have one second half of a key, in some order, and where the rows lie that have none."""

    alone: Ints
    told: Ints

    def column(self, name: str) -> Column:
        """A column of either side, of all pairs."""

    def places(self, which: Ints) -> tuple[Ints, Ints]:
        """Where the rows of some of the pairs lie on each side."""

    def without(self, which: Ints) -> Beside:
        """All pairs but some."""


@dataclass(slots=True)
class Lying:
    """Pairs whose rows follow one another on both sides, but for those that have no other.

    Attributes:
        sides: of each side, where its rows begin, their columns, and which of them are of the pairs; null where all.
    """

    sides: tuple[tuple[int, dict[str, Column], Mask | None], ...]
    alone: Ints
    told: Ints

    def column(self, name: str) -> Column:
        """See `Beside`."""
        return next(columns[name].where(met) for _, columns, met in self.sides if name in columns)

    def places(self, which: Ints) -> tuple[Ints, Ints]:
        """See `Beside`."""
        left, right = (start + (which if met is None else np.flatnonzero(met)[which]) for start, _, met in self.sides)
        return left, right

    def without(self, which: Ints) -> Beside:
        """See `Beside`."""
        sides = []
        for (start, columns, met), lie in zip(self.sides, self.places(which), strict=True):
            held = np.ones(len(columns[next(iter(columns))].values), np.bool_) if met is None else met.copy()
            held[lie - start] = False
            sides.append((start, columns, held))
        return Lying(tuple(sides), self.alone, self.told)


@dataclass(slots=True)
class Fetched:
    """Pairs whose rows lie anywhere.

    Attributes:
        columns: of both sides.
        left, right: where they lie.
    """

    columns: dict[str, Column]
    left: Ints
    right: Ints
    alone: Ints
    told: Ints

    def column(self, name: str) -> Column:
        """See `Beside`."""
        return self.columns[name]

    def places(self, which: Ints) -> tuple[Ints, Ints]:
        """See `Beside`."""
        return self.left[which], self.right[which]

    def without(self, which: Ints) -> Beside:
        """See `Beside`."""
        held = np.ones(len(self.left), np.bool_)
        held[which] = False
        columns = {name: column.where(held) for name, column in self.columns.items()}
        return Fetched(columns, self.left[held], self.right[held], self.alone, self.told)
