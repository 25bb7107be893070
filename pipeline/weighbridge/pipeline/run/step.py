"""A step of a run: what it works on, which of that is due, and what it did, in numbers and files."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from weighbridge.pipeline.lake.lake import Lake
from weighbridge.pipeline.price.book import PriceBook
from weighbridge.pipeline.run.failure import spoken
from weighbridge.pipeline.run.home import Home
from weighbridge.pipeline.run.stamps import Marks, Rest, Stamps
from weighbridge.pipeline.settings import FILE as SETTINGS

FILE = "stamps.json"
# A unit, and whether the notes of its step are lost -> whether it stays as it is.
Rests = Callable[[str, bool], bool]


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
        rests: which units stay as they are although their rows are others, as retention took from them; it is asked
            with a unit, and whether the notes of the step are lost.
    """

    name: str
    marks: Callable[[Home, date], Marks]
    work: Callable[[Home, Sequence[str], date], Work]
    holds: Callable[[Home, str], bool] = lambda _home, _unit: True
    together: bool = False
    rests: Callable[[Home, date], Rests] = lambda _home, _today: lambda _unit, _lost: False

    def due(self, home: Home, today: date) -> dict[str, str]:
        """The units whose rows have changed since they were done last, with their marks, in order."""
        return self._parted(home, today)[0]

    def _parted(self, home: Home, today: date) -> tuple[dict[str, str], dict[str, str]]:
        """The units that are due, and those that would be if they did not rest."""
        marks = self.marks(home, today)
        noted = stamps_of(home).of(self.name)
        stale = {
            unit: mark for unit, mark in sorted(marks.items()) if noted.get(unit) != mark or not self.holds(home, unit)
        }
        rests = self.rests(home, today) if stale else None
        resting = {unit for unit in stale if rests is not None and rests(unit, not noted)}
        return (
            {unit: mark for unit, mark in stale.items() if unit not in resting},
            {unit: mark for unit, mark in stale.items() if unit in resting},
        )

    def within(self, home: Home, span: Span, today: date) -> dict[str, str]:
        """The units of these days, due or not, with their marks, in order."""
        return {unit: mark for unit, mark in sorted(self.marks(home, today).items()) if span.holds(unit)}

    def asked(self, home: Home, span: Span | None, today: date) -> dict[str, str]:
        """The units of these days, or what is due where there is no span.

        Where the notes are lost, it is noted of units that rest that they do: what is noted later must not show them
        as units that were never done.
        """
        if span is not None:
            return self.within(home, span, today)
        due, resting = self._parted(home, today)
        if resting and not stamps_of(home).of(self.name):
            stamps_of(home).put(self.name, resting)
        return due

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

    The lake has to be locked by the caller, so that nothing new comes in meanwhile. What was done is written down
    before the block, so it stays done also where the block is cut off: whoever comes next does (`settle_rest`).
    """
    held = list(steps)
    settle_rest(home, held)
    done = {step.name: sorted(set(step.marks(home, today)) - set(step.due(home, today))) for step in held}
    stamps_of(home).rest(Rest(today, _facts(home), done))
    yield
    settle_rest(home, held, alone=True)


def settle_rest(home: Home, steps: Iterable[Step], *, alone: bool = False) -> None:
    """Note that what rests was done as its rows are now, unless anything else has come meanwhile: then it is due.

    Args:
        alone: nothing else can have come.
    """
    rest = stamps_of(home).resting()
    if rest is None:
        return
    marks: dict[str, Marks] = {}
    if alone or rest.facts == _facts(home):
        for step in steps:
            done = set(rest.done.get(step.name, ()))
            marks[step.name] = {unit: mark for unit, mark in step.marks(home, rest.day).items() if unit in done}
    stamps_of(home).settle(marks)


def _facts(home: Home) -> str:
    """A mark of what makes anything due beside rows that are deleted or packed: files, decisions, closes, settings."""
    lake = home.lake()
    told = [each for table in ("segment", "close", "finding_status", "price") for each in (table, lake.version(table))]
    file = home.root / SETTINGS
    prices = [row.price_id for layer in PriceBook.load(home.settings.prices).layers for row in layer]
    return hashed([*told, file.read_bytes() if file.is_file() else "", *prices])


def marks_by_day(lake: Lake, tables: Collection[str]) -> dict[date, str]:
    """Day -> one mark of its rows in all these tables."""
    marks = {table: lake.marks(table) for table in tables}
    days = {day for of_table in marks.values() for day in of_table if day is not None}
    return {day: hashed(of_table.get(day, "") for of_table in marks.values()) for day in sorted(days)}


def hashed(parts: Iterable[object]) -> str:
    """A short mark of some facts, in order."""
    return hashlib.sha256("\n".join(map(str, parts)).encode()).hexdigest()[:16]
