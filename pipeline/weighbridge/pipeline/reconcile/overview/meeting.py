"""Both sides of a stretch put beside each other by the order of their keys.

Where keys of both sides are in one order they lie beside their equals, and nothing has to be hashed. This is
`pairs.paired` and `pairs.numbered` for rows that are in memory: the same pairs and the same numbers, for half of what a
join takes where both sides rise, and a good deal less where they do not. It goes piece by piece, each so small that it
stays near the processor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
import polars as pl

from weighbridge.pipeline.reconcile.overview import pairs
from weighbridge.pipeline.reconcile.overview.beside import Beside, Fetched, Lying
from weighbridge.pipeline.reconcile.overview.keys import LEAD, whole
from weighbridge.pipeline.reconcile.overview.names import WHO
from weighbridge.pipeline.reconcile.overview.numbers.columns import Columns, Mask, Rising
from weighbridge.pipeline.reconcile.overview.numbers.dealt import in_order
from weighbridge.pipeline.reconcile.overview.numbers.runs import NONE, Ints, each_once
from weighbridge.pipeline.reconcile.overview.totals.packed import NO_ROWS
from weighbridge.pipeline.reconcile.overview.totals.summed import Few, Plain

_INPUT, _OUTPUT = map(pairs.KINDS.index, (pairs.INPUT_DIFFERS, pairs.OUTPUT_DIFFERS))
# Rows of each side in a piece: what stays near the processor.
_NEAR = 2**15
_FIGURES = (WHO, "input", "output", "r_input", "r_output")


class Piece(NamedTuple):
    """What became of some rows of both sides.

    Attributes:
        plain: plain pairs of which every figure is known.
        partly: the other plain pairs, as `Packed.add` takes them; null where there can be none.
        alone, told: places of attempts and of reports that have no plain pair.
    """

    plain: Plain
    partly: pl.DataFrame | None
    alone: Ints
    told: Ints


@dataclass(slots=True)
class Meeting:
    """Both sides of a stretch.

    Attributes:
        attempts: rows of `pairs.attempt_side`, with `WHO` for their names.
        reports: rows of `pairs.reading_side`.
        join: how pairs are found on another engine: from `LEAD` and `place`, and `r_lo` and `r_place`, to every `place`
            and `r_place` once, beside each other where they have one key, else beside null; null where the order of the
            keys tells.
        each: every second half of a key of the attempts, rising, each once, in pieces.
        again: those that one of the sides has more than once: no piece has a row with one of them.
        crowded: how many attempts, and how many reports have one of those.

    Raises:
        LakeError: a row has no second half of a key.
    """

    attempts: pl.DataFrame
    reports: pl.DataFrame
    join: Callable[[pl.DataFrame, pl.DataFrame], pl.DataFrame] | None = None
    each: Sequence[Ints] = field(init=False)
    again: Ints = field(init=False)
    crowded: tuple[int, int] = (0, 0)
    _keys: tuple[Rising, Rising] = field(init=False)
    _left: Columns = field(init=False)
    _right: Columns = field(init=False)
    # Of every report, whether it can be read; null where all can.
    _readable: Mask | None = field(init=False)
    # Keys and places of the rows of both sides in their order, where they do not lie in it.
    _order: tuple[Ints, Ints] | None = None

    def __post_init__(self) -> None:
        """Look at the keys."""
        self._keys = Rising.of(whole(self.attempts)[LEAD]), Rising.of(whole(self.reports, "r_lo")["r_lo"])
        self.each, self.again = self._keys[0].pieces, NONE
        if not all(side.rise() for side in self._keys):
            self._put_in_order()
        self._left = Columns(self.attempts, ("attempt_hi", WHO, "input", "output"))
        self._right = Columns(self.reports, ("r_hi", "r_input", "r_output"))
        readable = self.reports["readable"]
        self._readable = None if readable.all() else readable.to_numpy()

    def pieces(self) -> Iterator[Piece]:
        """All rows of both sides but the crowded ones, once."""
        if self.join is not None:
            found = self._elsewhere(self.join)
        else:
            found = self._rising() if self._order is None else self._ordered(*self._order)
        yield from map(self._judged, found)

    def _put_in_order(self) -> None:
        size, other = (side.size for side in self._keys)
        keys, places = in_order(np.concatenate([*self._keys[0].pieces, *self._keys[1].pieces]))
        mine = places < size
        self.each = [keys[mine]]
        equal = keys[1:] == keys[:-1]
        equal &= mine[1:] == mine[:-1]
        if equal.any():
            self.again = each_once(keys[1:][equal])
            self.each = [each_once(self.each[0])]
            once = ~np.isin(keys, self.again)
            left = int(np.count_nonzero(mine[once]))
            self.crowded = size - left, other - (int(np.count_nonzero(once)) - left)
            keys, places = keys[once], places[once]
        self._order = keys, places

    def _rising(self) -> Iterator[Beside]:
        """Rows as they lie, for both sides rise, and none has a key twice."""
        own, other = self._keys
        starts = own.starts(_NEAR) or [0]
        firsts = [0, *other.places([int(own.between(start, start + 1)[0]) for start in starts[1:]])]
        ends = pairwise([*starts, own.size]), pairwise([*firsts, other.size])
        for (start, end), (first, last) in zip(*ends, strict=True):
            alone, told = _lone(own.between(start, end), other.between(first, last))
            sides = []
            for side, begin, until, lone in ((self._left, start, end, alone), (self._right, first, last, told)):
                met = None
                if len(lone):
                    met = np.ones(until - begin, np.bool_)
                    met[lone] = False
                sides.append((begin, side.between(begin, until), met))
            yield Lying(tuple(sides), alone + start, told + first)

    def _ordered(self, keys: Ints, places: Ints) -> Iterator[Beside]:
        """Rows in the order of their keys; of equal ones the attempt is the first."""
        size = self.attempts.height
        cuts = np.searchsorted(keys, keys[2 * _NEAR :: 2 * _NEAR])
        for start, end in pairwise([0, *cuts.tolist(), len(keys)]):
            near, at = keys[start:end], places[start:end]
            equal = np.flatnonzero(near[1:] == near[:-1])
            single = np.ones(len(near), np.bool_)
            single[equal] = single[equal + 1] = False
            left, right, rest = at.take(equal), at.take(equal + 1) - size, at[single]
            columns = self._left.at(left) | self._right.at(right)
            yield Fetched(columns, left, right, rest[rest < size], rest[rest >= size] - size)

    def _elsewhere(self, join: Callable[[pl.DataFrame, pl.DataFrame], pl.DataFrame]) -> Iterator[Beside]:
        """Rows as another engine gives them."""
        sides = zip((LEAD, "r_lo"), ("place", "r_place"), self._lying(), strict=True)
        met = join(*(pl.DataFrame({name: keys, place: at}) for name, place, (keys, at) in sides))
        for start in range(0, met.height, _NEAR):
            left, right = (met[name].slice(start, _NEAR) for name in ("place", "r_place"))
            both = left.is_not_null() & right.is_not_null()
            pair = [side.filter(both).to_numpy() for side in (left, right)]
            lone = [side.filter(other.is_null()).to_numpy() for side, other in ((left, right), (right, left))]
            yield Fetched(self._left.at(pair[0]) | self._right.at(pair[1]), *pair, *lone)

    def _lying(self) -> list[tuple[pl.Series | Ints, pl.Series | Ints]]:
        """Keys and places of both sides, but for crowded ones."""
        if self._order is None:
            held = (self.attempts[LEAD], self.reports["r_lo"])
            return [(side, pl.int_range(len(side), eager=True)) for side in held]
        keys, places = self._order
        mine = places < self.attempts.height
        return [(keys[mine], places[mine]), (keys[~mine], places[~mine] - self.attempts.height)]

    def _judged(self, rows: Beside) -> Piece:
        """What is plain among the pairs."""
        alone, told = rows.alone, rows.told
        stray = self._strangers(rows)
        if len(stray):
            lie = rows.places(stray)
            alone, told = np.concatenate([alone, lie[0]]), np.concatenate([told, lie[1]])
            rows = rows.without(stray)
        figures = {name: rows.column(name) for name in _FIGURES}
        masks = [column.known for column in figures.values() if column.known is not None]
        partly = None
        if masks:
            full = np.logical_and.reduce(masks)
            left, right = rows.places(np.flatnonzero(~full))
            partly = _numbered(self.attempts[left], self.reports[right])
            figures = {name: column.where(full) for name, column in figures.items()}
        return Piece(_plain({name: column.values for name, column in figures.items()}), partly, alone, told)

    def _strangers(self, rows: Beside) -> Ints:
        """Which pairs are not plain."""
        own, other, who = (rows.column(name) for name in ("attempt_hi", "r_hi", WHO))
        fits = own.values == other.values
        for column in (own, other, who):
            fits = fits if column.known is None else fits & column.known
        if self._readable is not None:
            fits &= self._readable.take(rows.places(np.arange(len(fits)))[1])
        return np.flatnonzero(~fits)


def _lone(one: Ints, other: Ints) -> tuple[Ints, Ints]:
    """Where numbers lie that only one of two rising runs has, in each of them."""
    both = np.concatenate([one, other])
    if not len(both):
        return NONE, NONE
    # Two runs are merged here, not sorted.
    both.sort(kind="stable")
    differs = both[1:] != both[:-1]
    single = np.ones(len(both), np.bool_)
    single[1:] = differs
    single[:-1] &= differs
    lone = both[single]
    return _places(lone, one), _places(lone, other)


def _places(values: Ints, rising: Ints) -> Ints:
    """Where those of some values lie that are among rising numbers."""
    if not len(values) or not len(rising):
        return NONE
    found = np.searchsorted(rising, values)
    lie: Ints = found[rising.take(found, mode="clip") == values]
    return lie


def _plain(figures: dict[str, Ints]) -> Plain:
    """Plain pairs whose figures are all known, from who they are and what each side says."""
    who = figures[WHO]
    # Of those that match: theirs is the first kind, and adds nothing.
    group = who * pairs.STEP
    few = {}
    # In this order, for a difference in input is told before one in output.
    for name, kind in (("output", _OUTPUT), ("input", _INPUT)):
        few[name] = Few.of(figures[f"r_{name}"] - figures[name])
        group[few[name].places] = who[few[name].places] * pairs.STEP + kind
    return Plain(group, figures["input"], figures["output"], few["input"], few["output"])


def _numbered(attempts: pl.DataFrame, reports: pl.DataFrame) -> pl.DataFrame:
    """The same of pairs of which some figures are unknown."""
    both = pl.concat([attempts, reports], how="horizontal").with_columns(plain=True)
    native: Any = pairs.numbered(nw.from_native(both.lazy()), WHO).to_native()
    rows: pl.DataFrame = native.select(NO_ROWS.columns).collect()
    return rows
