"""Bins that are fixed in advance, and the rows of a cell merged until each stands for at least eleven attempts.

Tokens and money have two bins an octave, times four: bin number i begins at the least x with p * log2(x + 1) >= i. An
exact count is nearly as good as a name (of single calls, most pairs of input and output are unique), and an exact
time gives the count back; two bins an octave say what a call was like and not which it was.

    input tokens    0  1  2  3-4  5-6  7-10  11-14  15-21  22-30  31-44  45-62  63-89
    of a cell       .  .  .   2    .     1     6      30     9      3      .      4
    released                 |------------ 39 -----------|  |---------- 16 ---------|

A row is released only where it stands for eleven attempts or more; fewer are merged with the next bin, the last ones
with the one before. Nothing is left out, so no sum of a cell and no other row gives a merged one away.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache

import polars as pl

# Fewer attempts than this stand in no row that is released.
FEWEST = 11
_OCTAVES = 63
_BEYOND = 2**63


@dataclass(frozen=True, slots=True)
class Released:
    """One row of a cell: attempts between two bounds, both inclusive; null where nothing may be said of the value."""

    low: int | None
    high: int | None
    attempts: int


@cache
def edges(per_octave: int) -> tuple[int, ...]:
    """Where the bins begin, from 0 on: exact integers, so that no rounding moves a value to its neighbour."""
    found = (_least(step, per_octave) - 1 for step in range(_OCTAVES * per_octave + 1))
    return tuple(dict.fromkeys(found))


def _least(step: int, per_octave: int) -> int:
    """The least whole number that is at least 2 to the power of step / per_octave."""
    number = int(2 ** (step / per_octave))
    while number**per_octave < 2**step:
        number += 1
    while (number - 1) ** per_octave >= 2**step:
        number -= 1
    return number


def binned(values: pl.Series, begins: tuple[int, ...]) -> pl.Series:
    """The number of the bin each value lies in; null where it is unknown or below the first bin."""
    place = pl.Series(begins, dtype=pl.Int64).search_sorted(values.fill_null(-1), side="right").cast(pl.Int64) - 1
    return place.set(values.is_null() | (place < 0), None).alias(values.name)


def merged(counts: Iterable[tuple[int | None, int]], begins: tuple[int, ...]) -> Iterator[Released]:
    """The rows of one cell and measure.

    Args:
        counts: number of the bin -> attempts, in order of the bins, unknown values first. In all at least `FEWEST`.
        begins: where the bins begin.
    """
    held: list[tuple[int | None, int]] = []
    whole: list[list[tuple[int | None, int]]] = []
    for count in counts:
        held.append(count)
        if sum(attempts for _, attempts in held) >= FEWEST:
            whole.append(held)
            held = []
    if held and whole:
        whole[-1] += held
    for group in whole:
        yield _released(group, begins)


def _released(group: list[tuple[int | None, int]], begins: tuple[int, ...]) -> Released:
    attempts = sum(count for _, count in group)
    places = [place for place, _ in group if place is not None]
    if len(places) < len(group):
        return Released(None, None, attempts)
    last = places[-1] + 1
    return Released(begins[places[0]], (begins[last] if last < len(begins) else _BEYOND) - 1, attempts)
