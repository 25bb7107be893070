"""Medians of groups of values, and the sorted values they are taken from, which move along from day to day.

A group and a value are packed into one integer, the group in its upper half, so that all groups are sorted at once. A
run over many days sorts what is new on each of them: the rest is there from the day before.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass

import numpy as np
import polars as pl

from weighbridge.pipeline.baseline.history import Ints, Mask, Small

# Values that a run keeps for its next day, of all classes together, 8 bytes each.
MOST = 2**26


def packed(group: Ints, value: Small) -> Ints:
    """Group and value as one integer; values are 0 or more."""
    return (group << 32) | value


def rising(values: Ints) -> Ints:
    """The values in rising order."""
    found: Ints = pl.Series(values).sort().to_numpy()
    return found


@dataclass(frozen=True, slots=True)
class _Held:
    """Sorted values of the days first..last - 1, and series x day of them: rows that did not count."""

    first: int
    last: int
    out: Mask | None
    values: Ints


class Sorted:
    """What a run has sorted, by its name."""

    def __init__(self, most: int = MOST) -> None:
        """Nothing is kept yet.

        Args:
            most: values that are kept at once; more are sorted anew for every day.
        """
        self._most = most
        self._held: dict[Hashable, _Held] = {}

    def since(self, names: list[Hashable], first: int) -> int:
        """The first day that is needed to move these along to one that begins with `first`.

        What ends before that day has nothing in common with it and is dropped.
        """
        for name in names:
            if name in self._held and self._held[name].last < first:
                del self._held[name]
        return min([first, *(self._held[name].first for name in names if name in self._held)])

    def of(self, name: Hashable, first: int, last: int, out: Mask | None, values: Callable[[int, int], Ints]) -> Ints:
        """The values of the days first..last - 1 in rising order.

        Args:
            name: what they are values of.
            first, last: days.
            out: series x day: rows that do not count; null: all do.
            values: gives those of a stretch of days, packed, in any order.
        """
        held = self._held.pop(name, None)
        if held is not None and held.first <= first <= held.last <= last and _alike(held, out):
            found = _without(held.values, rising(values(held.first, first)))
            found = _with(found, rising(values(held.last, last)))
        else:
            found = rising(values(first, last))
        if sum(len(each.values) for each in self._held.values()) + len(found) <= self._most:
            self._held[name] = _Held(first, last, None if out is None else out[:, first:last].copy(), found)
        return found


def _alike(held: _Held, out: Mask | None) -> bool:
    """Whether the same rows count as did then."""
    now = None if out is None else out[:, held.first : held.last]
    if now is None or held.out is None:
        return not any(each is not None and each.any() for each in (now, held.out))
    return np.array_equal(now, held.out)


def _with(values: Ints, more: Ints) -> Ints:
    return np.insert(values, np.searchsorted(values, more), more) if len(more) else values


def _without(values: Ints, fewer: Ints) -> Ints:
    """Equal values are the same, so that any of them will do."""
    if not len(fewer):
        return values
    again = np.arange(len(fewer)) - np.searchsorted(fewer, fewer)
    return np.delete(values, np.searchsorted(values, fewer) + again)


@dataclass(frozen=True, slots=True)
class Medians:
    """The medians of groups of values, whole and with one of their values left out; 0 where there is none.

    Of an even number of values it is the middle of the two in the middle, rounded down. Without a value below `low` it
    is `below`, without one above `high` it is `above`, without one between them `between`.
    """

    sizes: Ints
    whole: Small
    low: Small
    high: Small
    below: Small
    between: Small
    above: Small

    @classmethod
    def of(cls, values: Ints, groups: int) -> Medians:
        """The medians of so many groups of packed values in rising order."""
        ends = np.searchsorted(values, np.arange(groups + 1, dtype=np.int64) << 32)
        starts, sizes = ends[:-1], np.diff(ends)
        half, odd = sizes // 2, sizes % 2 == 1
        held = values if len(values) else np.zeros(1, np.int64)

        def rank(place: Ints) -> Ints:
            inside = starts + np.clip(place, 0, np.maximum(sizes - 1, 0))
            found: Ints = np.where(sizes > 0, held[np.minimum(inside, len(held) - 1)] & 0xFFFFFFFF, 0)
            return found

        before, middle, after = rank(half - 1), rank(half), rank(half + 1)
        whole = np.where(odd, middle, (before + middle) // 2)
        alone = sizes == 1
        # Without a low value the middle moves up, without a high one down, without the middle one to both sides.
        parts = (
            whole,
            np.where(odd, middle, before + 1),
            np.where(odd, middle, before),
            np.where(alone, whole, np.where(odd, (middle + after) // 2, middle)),
            np.where(alone, whole, (before + after) // 2),
            np.where(alone, whole, np.where(odd, (before + middle) // 2, before)),
        )
        return cls(sizes, *(part.astype(np.int32) for part in parts))
