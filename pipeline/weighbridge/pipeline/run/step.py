"""A step of a run: what it works on, which of that is due, and what it did, in numbers and files."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from weighbridge.pipeline.lake.lake import Lake
from weighbridge.pipeline.run.failure import spoken
from weighbridge.pipeline.run.home import Home
from weighbridge.pipeline.run.stamps import Marks, Stamps

FILE = "stamps.json"


@dataclass(frozen=True, slots=True)
class Work:
    """What a piece of work did: nothing of the data, only how much of it and where it went.

    Attributes:
        counts: what was counted, by name.
        files: unit -> the file made of it.
        refused: a gate refused; nothing that comes after this step may be done.
    """

    counts: Mapping[str, int] = field(default_factory=dict)
    files: Mapping[str, Path] = field(default_factory=dict)
    refused: bool = False


@dataclass(frozen=True, slots=True)
class Span:
    """Days from `first` to `last`, both inclusive, and the months they touch."""

    first: date
    last: date

    def holds(self, unit: str) -> bool:
        """Whether a unit, a day or a month, is one of them."""
        return self.first.isoformat()[: len(unit)] <= unit <= self.last.isoformat()[: len(unit)]


@dataclass(frozen=True, slots=True)
class Step:
    """One kind of work on days or months, in any order of them.

    Attributes:
        name: what is done, a verb.
        marks: the units there are on a UTC day, each with a mark of the rows the work on it would be made from.
        work: does some units, all at once, on that day; safe to run again.
        holds: whether what was made of a unit is still there.
        together: what is made of units lies in one place, so whoever does them one by one does them in one piece.
    """

    name: str
    marks: Callable[[Home, date], Marks]
    work: Callable[[Home, Sequence[str], date], Work]
    holds: Callable[[Home, str], bool] = lambda _home, _unit: True
    together: bool = False

    def due(self, home: Home, today: date) -> dict[str, str]:
        """The units whose rows have changed since they were done last, with their marks, in order."""
        marks = self.marks(home, today)
        due = stamps_of(home).due(self.name, marks)
        return {unit: mark for unit, mark in sorted(marks.items()) if unit in due or not self.holds(home, unit)}

    def within(self, home: Home, span: Span, today: date) -> dict[str, str]:
        """The units of these days, due or not, with their marks, in order."""
        return {unit: mark for unit, mark in sorted(self.marks(home, today).items()) if span.holds(unit)}

    def asked(self, home: Home, span: Span | None, today: date) -> dict[str, str]:
        """The units of these days, or what is due where there is no span."""
        return self.due(home, today) if span is None else self.within(home, span, today)

    def run(self, home: Home, due: Marks, today: date) -> Work:
        """Do these units and note that they are done as they were when their marks were taken."""
        if not due:
            return Work()
        with spoken(f"running the step {self.name}"):
            done = self.work(home, sorted(due), today)
            if not done.refused:
                stamps_of(home).put(self.name, due)
        return done


def stamps_of(home: Home) -> Stamps:
    """The stamps of an installation."""
    return Stamps(home.state / FILE)


@contextmanager
def no_news(home: Home, steps: Iterable[Step], today: date) -> Iterator[None]:
    """What changes rows while the block runs says nothing new (erasing, packing): what was done stays done.

    The lake has to be locked by the caller, so that nothing new comes in meanwhile.
    """
    stamps = stamps_of(home)
    done = {step: set(step.marks(home, today)) - set(step.due(home, today)) for step in steps}
    yield
    for step, units in done.items():
        stamps.put(step.name, {unit: mark for unit, mark in step.marks(home, today).items() if unit in units})


def marks_by_day(lake: Lake, tables: Collection[str]) -> dict[date, str]:
    """Day -> one mark of its rows in all these tables."""
    marks = {table: lake.marks(table) for table in tables}
    days = {day for of_table in marks.values() for day in of_table if day is not None}
    return {day: hashed(of_table.get(day, "") for of_table in marks.values()) for day in sorted(days)}


def hashed(parts: Iterable[object]) -> str:
    """A short mark of some facts, in order."""
    return hashlib.sha256("\n".join(map(str, parts)).encode()).hexdigest()[:16]
