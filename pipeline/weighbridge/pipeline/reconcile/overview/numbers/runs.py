"""Sorted runs of whole numbers, in memory or on disk, that are cut at the same values and merged piece by piece.

Of a run on disk a mark in every few thousand numbers stays in memory, so that a place in it is found by reading one
block. Mapping its file instead would count as memory all that was ever looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

Ints = np.ndarray[Any, np.dtype[np.int64]]

NONE: Ints = np.zeros(0, np.int64)
# Numbers between two marks of a run on disk: 32 KiB.
STEP = 4096
# Up to so many runs are merged faster than sorted.
_FEW = 16


@dataclass(frozen=True, slots=True)
class Run:
    """Rising whole numbers; equal ones may follow one another.

    Attributes:
        size: how many.
        marks: some of them, rising: each `STEP`-th where they lie on disk, all of them where they do not.
        path: the file they lie in, 8 bytes each; null where they are in memory.
    """

    size: int
    marks: Ints
    path: Path | None = None

    @classmethod
    def held(cls, numbers: Ints) -> Run:
        """A run in memory."""
        return cls(len(numbers), numbers)

    @classmethod
    def put_away(cls, numbers: Ints, path: Path) -> Run:
        """Write a run to a file."""
        numbers.tofile(path)
        return cls(len(numbers), numbers[::STEP].copy(), path)

    def longer(self, numbers: Ints) -> Run:
        """This run on disk with numbers behind it, none of which is below any of its own."""
        assert self.path is not None
        with self.path.open("ab") as file:
            numbers.tofile(file)
        marks = numbers[-self.size % STEP :: STEP]
        return Run(self.size + len(numbers), np.concatenate([self.marks, marks]), self.path)

    def piece(self, start: int, end: int) -> Ints:
        """Part of it."""
        if self.path is None:
            return self.marks[start:end]
        return np.fromfile(self.path, np.int64, max(0, end - start), offset=8 * start)

    def places(self, values: Ints) -> Ints:
        """How many of its numbers are below each value."""
        found: Ints = np.searchsorted(self.marks, values)
        if self.path is None:
            return found
        inside = [
            first + 1 + int(np.searchsorted(self.piece(first + 1, min(first + STEP, self.size)), value))
            for first, value in zip((found - 1) * STEP, values, strict=True)
            if first >= 0
        ]
        return np.concatenate([np.zeros(len(values) - len(inside), np.int64), np.array(inside, np.int64)])

    def sample(self, most: int) -> Ints:
        """Some of its numbers, evenly spread: `most` or a few more, fewer where it has no more marks."""
        return self.marks[:: max(1, len(self.marks) // most)]


def values_between(runs: Sequence[Run], pieces: int) -> Ints:
    """Rising values that cut all runs together into about so many pieces of about the same size."""
    if pieces < 2:
        return NONE
    # Of a large run more than of a small one: what no sample lies in may grow to several pieces.
    total = max(1, sum(run.size for run in runs))
    samples = [(run.size, run.sample(max(16, 64 * pieces * run.size // total))) for run in runs if run.size]
    if not samples:
        return NONE
    numbers = np.concatenate([sample for _, sample in samples])
    # A run counts by its size, however many numbers stand for it.
    weights = np.concatenate([np.full(len(sample), size / len(sample)) for size, sample in samples])
    order = np.argsort(numbers, kind="stable")
    reached = np.cumsum(weights[order])
    wanted = np.arange(1, pieces) * (reached[-1] / pieces)
    return each_once(numbers[order][np.minimum(np.searchsorted(reached, wanted), len(order) - 1)])


def cut(runs: Sequence[Run], values: Ints) -> Iterator[list[Ints]]:
    """The parts of all runs below the first of rising values, between each two, and from the last one on."""
    edges = [np.concatenate([[0], run.places(values), [run.size]]) for run in runs]
    for piece in range(len(values) + 1):
        parts = [run.piece(int(edge[piece]), int(edge[piece + 1])) for run, edge in zip(runs, edges, strict=True)]
        yield [part for part in parts if len(part)]


def merged(runs: Sequence[Ints]) -> Ints:
    """The numbers of rising runs, rising."""
    held: Ints = np.concatenate([NONE, *runs])
    if len(runs) > _FEW:
        return in_order(held)
    held.sort(kind="stable")
    return held


def in_order(numbers: Ints) -> Ints:
    """Numbers, rising. What Polars takes for it does not hang on the processor: for NumPy it is 6 to 60 ns each."""
    return pl.Series(numbers, dtype=pl.Int64).sort().to_numpy()


def each_once(numbers: Ints) -> Ints:
    """Numbers, rising, each once. NumPy's own way loads its masked arrays first, for longer than all of this takes."""
    held = np.sort(numbers)
    if len(held) < 2:
        return held
    first = np.ones(len(held), np.bool_)
    np.not_equal(held[1:], held[:-1], out=first[1:])
    return held[first]


def twice(rising: Ints) -> Ints:
    """What comes more than once among rising numbers, each once."""
    return each_once(rising[1:][rising[1:] == rising[:-1]])
