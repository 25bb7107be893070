"""How often each figure was met in each group, for figures that are met often; memory has an end.

Sorting one number for every row takes as long as joining the rows. But figures repeat, and what repeats can be counted
in its place, at a sixth of the cost. The figures of a group lie on pages of `PAGE` counts, and a page is made once
enough rows have asked for it. Rows that find none (rare groups, figures below nought or very large, no room left) are
given back to whoever asked, to be sorted.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from weighbridge.pipeline.reconcile.overview.numbers.runs import NONE, Ints, each_once
from weighbridge.pipeline.reconcile.overview.totals.percentiles import counted

_BITS = 9
PAGE = 2**_BITS
# 64 MiB of counts; of those that were never made the machine gives no memory.
MOST_PAGES = 2**14
# As many rows as this are sorted before a page is made for them.
ENOUGH = 64
# Rows that ask for pages together, for asking takes as long for one row as for some thousands.
TOGETHER = 2**12
# Places of pages, by group and figure: 32 MiB at most, and figures beyond so many pages have none.
_MOST_PLACES = 2**21
_MOST_WIDE = 64
# Rows at a time: what stays near the processor.
_NEAR = 2**15
# Pages that are read together.
_READ = 2**9


@dataclass(slots=True)
class Tally:
    """Counts of figures in groups, both whole numbers.

    Attributes:
        pages: how many are made at most.
        enough: how many rows have to ask for a page before it is made.
        together: rows that found no page ask together once they are so many.
    """

    pages: int = MOST_PAGES
    enough: int = ENOUGH
    together: int = TOGETHER
    # By group and page of the figure: where its counts begin, -1 where there are none; and how many rows asked for it.
    _pages: Ints = field(default_factory=lambda: np.full((64, 4), -1, np.int64))
    _asked: Ints = field(default_factory=lambda: np.zeros((64, 4), np.int64))
    _counts: Ints = field(init=False)
    _made: int = 0
    # Places of rows that found no page and did not ask yet, and how many rows these are.
    _noted: list[Ints] = field(default_factory=list)
    _wanted: int = 0

    def __post_init__(self) -> None:
        """All counts are nought."""
        self._counts = np.zeros(self.pages << _BITS, np.int64)

    def add(self, group: Ints, figure: Ints) -> Ints:
        """Count rows by their group, which is not below nought, and figure; the places of those that found no page."""
        if not len(group):
            return NONE
        largest, most = int(group.max()), int(figure.max())
        self._make_room(largest, most >> _BITS)
        groups, wide = self._pages.shape
        if largest < groups and figure.min() >= 0 and most < wide << _BITS:
            return self._counted(group, figure)
        inside = (group < groups) & (figure >= 0) & (figure < wide << _BITS)
        own = np.flatnonzero(inside)
        return np.concatenate([np.flatnonzero(~inside), own[self._counted(group[own], figure[own])]])

    def cuts(self) -> Ints:
        """Groups, rising, between each two of which there are no more pages than are read together, or one group."""
        reached = np.cumsum(np.count_nonzero(self._pages >= 0, axis=1))
        wanted = np.arange(_READ, int(reached[-1]) + 1, _READ)
        return each_once(np.searchsorted(reached, wanted, "right"))

    def counted(self, first: int, until: int) -> tuple[Ints, Ints, Ints]:
        """Groups, figures and counts above nought of groups from one to before another, in the order of both."""
        rows = self._pages[first:until].ravel()
        places = np.flatnonzero(rows >= 0)
        held = self._counts.reshape(-1, PAGE)[rows[places] >> _BITS]
        page, cell = np.nonzero(held)
        group, number = np.divmod(places[page], self._pages.shape[1])
        return group + first, number * PAGE + cell, held[page, cell]

    def _counted(self, group: Ints, figure: Ints) -> Ints:
        """Count rows whose pages have a place; those that found no page."""
        wide, rest = self._pages.shape[1], [NONE]
        pages = self._pages.ravel()
        for start in range(0, len(group), _NEAR):
            near = slice(start, start + _NEAR)
            places = group[near] * wide
            places += figure[near] >> _BITS
            cells = pages.take(places)
            if int(cells.min()) < 0 and self._wanting(places[cells < 0]):
                cells = pages.take(places)
            found = cells >= 0
            cells += figure[near] & (PAGE - 1)
            if not found.all():
                rest.append(start + np.flatnonzero(~found))
                cells = cells[found]
            np.add.at(self._counts, cells, 1)
        return np.concatenate(rest)

    def _wanting(self, places: Ints) -> bool:
        """Note the places of rows that found no page, and ask for pages once they are many; whether that was done."""
        if self._made >= self.pages:
            return False
        self._noted.append(places)
        self._wanted += len(places)
        if self._wanted < self.together:
            return False
        self._ask(np.concatenate(self._noted))
        self._noted, self._wanted = [], 0
        return True

    def _ask(self, places: Ints) -> None:
        """Make the pages that enough rows have asked for, while there is room."""
        asked, rows = counted(np.sort(places))
        self._asked.ravel()[asked] += rows
        made = asked[self._asked.ravel()[asked] >= self.enough][: self.pages - self._made]
        self._pages.ravel()[made] = np.arange(self._made, self._made + len(made)) << _BITS
        self._made += len(made)

    def _make_room(self, group: int, page: int) -> None:
        """Places for groups up to one and pages up to one, as far as there may be any."""
        groups, wide = self._pages.shape
        if group >= groups:
            groups = min(2 ** (group + 1).bit_length(), _MOST_PLACES // wide)
        if page >= wide:
            wide = min(2 ** (page + 1).bit_length(), _MOST_WIDE, _MOST_PLACES // groups)
        if (groups, wide) != self._pages.shape:
            # Their places are those of the table as it is.
            self._ask(np.concatenate([NONE, *self._noted]))
            self._noted, self._wanted = [], 0
            self._pages = _wider(self._pages, groups, wide, -1)
            self._asked = _wider(self._asked, groups, wide, 0)


def _wider(table: Ints, groups: int, wide: int, blank: int) -> Ints:
    held = np.full((groups, wide), blank, np.int64)
    held[: table.shape[0], : table.shape[1]] = table
    return held
