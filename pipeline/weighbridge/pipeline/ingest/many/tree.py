"""How all lines of one form are read: which questions decide, and per answers to them what every count is the sum of.

A line whose answers were not met before is read by the pure function, with counts that remember (`linear`); all others
follow the questions as columns. So a line is read here as it is read alone, whatever the solver asks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import NamedTuple, cast

import numpy as np

from weighbridge.pipeline.ingest.many.columns import row_of
from weighbridge.pipeline.ingest.many.linear import LARGEST, Count, Question, Rest, Sum, Trace
from weighbridge.pipeline.ingest.many.places import Bits, Ints
from weighbridge.pipeline.ingest.many.template import Template
from weighbridge.pipeline.ingest.reading import UsageReading, read_parts

# What stands in a column, the same for all lines or made from the numbers of each.
Cell = Sum | object
# Of fewer than one in so many lines the numbers are taken apart from those of the others.
_APART = 2
# Forms whose lines are read in more ways than this gain nothing from being told apart.
_WAYS = 4096


@dataclass(slots=True, eq=False)
class Values:
    """The numbers of lines of one form as columns, and what was worked out from them.

    Attributes:
        numbers: per number of the form and line its value.
        rests: numbers that are made from those.
        places: the place of each of these lines among all of its form.
    """

    numbers: Ints
    rests: Sequence[Rest]
    places: Ints
    _sums: dict[Sum, Ints] = field(default_factory=dict)
    _answers: dict[Question, Bits] = field(default_factory=dict)

    def line(self, at: int) -> list[int]:
        """The numbers of one line."""
        return cast("list[int]", self.numbers[:, at].tolist())

    def sum(self, of: Sum) -> Ints:
        """A sum for every line."""
        if of not in self._sums:
            columns = [self._number(at) if factor == 1 else self._number(at) * factor for at, factor in of.factors]
            if of.constant or not columns:
                columns.append(np.full(len(self.places), of.constant))
            self._sums[of] = reduce(np.add, columns)
        return self._sums[of]

    def answers(self, question: Question) -> Bits:
        """The answer of every line to a question."""
        found = self._answers.get(question)
        if found is None:
            values = self.sum(question.of)
            found = self._answers[question] = values == 0 if question.equal else values < 0
        return found

    def some(self, which: Ints) -> Values:
        """Some of these lines."""
        return Values(self.numbers[:, which], self.rests, self.places[which])

    def _number(self, number: int) -> Ints:
        if number < len(self.numbers):
            return cast("Ints", self.numbers[number])
        rest = self.rests[number - len(self.numbers)]
        return self.sum(rest.of) % rest.divisor


class Found(NamedTuple):
    """Lines that are read alike.

    Attributes:
        values: their numbers, with those of others.
        which: the places of these lines in `values`; null where they are all of them.
        rows: of each reading, the answer's own first, its columns; empty where they have to be read one by one.
    """

    values: Values
    which: Ints | None
    rows: tuple[Mapping[str, Cell], ...]

    @property
    def places(self) -> Ints:
        """Their places among all lines of the form."""
        return self.values.places if self.which is None else self.values.places[self.which]

    def column(self, of: Sum) -> Ints:
        """A sum for each of them."""
        found = self.values.sum(of)
        return found if self.which is None else found[self.which]


@dataclass(slots=True, eq=False)
class _Node:
    """A question and where its answers lead; or how lines are read, where nothing is left to be asked."""

    asks: Question | None = None
    leads: dict[bool, _Node] = field(default_factory=dict)
    rows: tuple[Mapping[str, Cell], ...] | None = None


@dataclass(slots=True, eq=False)
class Tree:
    """The questions of one form.

    Attributes:
        template: the form.
        rests: numbers that are made from those of a line.
        ways: in how many ways its lines were read so far.
    """

    template: Template
    rests: list[Rest] = field(default_factory=list)
    ways: int = 0
    _root: _Node = field(default_factory=_Node)

    def read(self, numbers: Ints) -> Iterator[Found]:
        """Sort lines by how they are read.

        Args:
            numbers: per number of the form (see `Template.counted`) and line its value, none beyond `LARGEST`.
        """
        values = Values(numbers, self.rests, np.arange(numbers.shape[1]))
        waiting: list[tuple[_Node, Values, Ints | None]] = [(self._root, values, None)]
        while waiting:
            node, values, which = waiting.pop()
            if node.rows is None and node.asks is None and self.ways < _WAYS:
                self._grow(values.line(0 if which is None else int(which[0])))
            if node.asks is None:
                yield Found(values, which, node.rows or ())
                continue
            yes = values.answers(node.asks)
            yes = yes if which is None else yes[which]
            many = int(np.count_nonzero(yes))
            if many in {0, yes.size}:
                waiting.append((node.leads.setdefault(many > 0, _Node()), values, which))
                continue
            for answer, those in ((True, yes), (False, ~yes)):
                chosen = np.flatnonzero(those) if which is None else which[those]
                apart = chosen.size * _APART < len(values.places)
                of = (values.some(chosen), None) if apart else (values, chosen)
                waiting.append((node.leads.setdefault(answer, _Node()), *of))

    def _grow(self, line: Sequence[int]) -> None:
        """Read one line, and add its questions and how it is read."""
        asked, rows = self._traced(line)
        node = self._root
        for question, answer in asked.items():
            node.asks = question
            node = node.leads.setdefault(answer, _Node())
        node.rows = rows
        self.ways += 1

    def _traced(self, line: Sequence[int]) -> tuple[Mapping[Question, bool], tuple[Mapping[str, Cell], ...]]:
        """One line as the pure function reads it; no rows where it does more with a count than can be traced."""
        one = self.template
        bounds = [(-LARGEST, 0) if minus else (0, LARGEST) for minus in one.negative]
        trace = Trace(list(line), bounds, self.rests)
        leaves = list(one.part.flattened.leaves)
        for number, leaf in enumerate(one.counted):
            leaves[leaf] = leaves[leaf]._replace(integer=cast("int", trace.count(number)))
        part = replace(one.part, flattened=replace(one.part.flattened, leaves=leaves))
        try:
            reading = read_parts(one.provider, one.api, one.model, [part], day=one.day)
            return trace.asked, tuple(_row(each) for each in (reading, *reading.children))
        except TypeError:
            return trace.asked, ()


def _row(reading: UsageReading) -> Mapping[str, Cell]:
    return {name: cell.of if isinstance(cell, Count) else cell for name, cell in row_of(reading).items()}
