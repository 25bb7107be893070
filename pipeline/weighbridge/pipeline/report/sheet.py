"""What a section is made of: tables of exact values, figures in prose that point into those tables, and charts.

A section never formats. It returns exact integers and decimals; the page, the workbook and the CSV files each show
the same values in their own way. Null is unknown, and is shown as such.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import polars as pl

from weighbridge.schemas.identity import framed

if TYPE_CHECKING:
    from weighbridge.pipeline.report.view import View

Value = str | int | Decimal | date | None
Row = tuple[Value, ...]
# Stands in a cell where a figure would mean nothing; an unknown figure is null.
BLANK = ""


class Kind(StrEnum):
    """How a value is shown."""

    TEXT = "text"
    PROSE = "prose"  # a sentence of ours; words between backticks are code
    CODE = "code"  # an identifier or digest, in fixed width
    BADGE = "badge"  # a word of a closed enumeration, marked by colour as well
    COUNT = "count"
    SIGNED = "signed"  # a difference: its sign is always shown
    DECIMAL = "decimal"
    MEAN = "mean"  # an average of counts, shown with one decimal
    MONEY = "money"
    SHARE = "share"  # a fraction, shown in per cent
    CHANGE = "change"  # a difference as a fraction, shown in per cent with its sign
    DAY = "day"


# What a row is about, by which it is named.
_ABOUT = frozenset({Kind.TEXT, Kind.CODE, Kind.DAY})
_DIGITS = 8
TOTAL = "total"
NUMERIC = frozenset({Kind.COUNT, Kind.SIGNED, Kind.DECIMAL, Kind.MEAN, Kind.MONEY, Kind.SHARE, Kind.CHANGE})


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a sheet.

    Attributes:
        name: snake_case, with the unit where it has one; the header in CSV.
        label: the header on the page and in the workbook.
        currency: ISO 4217 code of a money column, or null where `currency_in` names the column that holds it.
        adds: the rows may be added up, so rows left off the page are shown as one.
        page: shown on the page; the files carry every column.
        short: on the page, only so many leading characters are shown.
        sparse: left off the page where every value is zero; the files carry it.
    """

    name: str
    label: str
    kind: Kind = Kind.TEXT
    currency: str | None = None
    currency_in: str | None = None
    adds: bool = False
    page: bool = True
    short: int | None = None
    sparse: bool = False

    @property
    def numeric(self) -> bool:
        """Whether it is set flush right."""
        return self.kind in NUMERIC


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """One table.

    Attributes:
        name: snake_case, at most 31 characters; the CSV file and the tab of the workbook.
        title: its caption.
        unit: the unit of its counts, for the caption; empty where the columns say it.
        columns, rows: the values; the first column on the page heads the row.
        total: one more row for the foot, or null.
        sources: the tables of the lake its numbers come from.
        empty: what is said where it has no rows.
        note: one sentence below it.
        shown: how many rows the page shows; the files hold all.
        page: shown on the page; the files carry every sheet.
        dated: its numbers belong to days of the period, so period and zone stand in the caption.
    """

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    sources: tuple[str, ...]
    empty: str
    unit: str = ""
    total: Row | None = None
    note: str = ""
    shown: int = 20
    page: bool = True
    dated: bool = True

    def index(self, column: str) -> int:
        """The place of a column."""
        return [item.name for item in self.columns].index(column)

    def figure(self, column: str, **where: Value) -> Figure:
        """The one value of `column` in the first row where every named column has the given value.

        Raises:
            KeyError: there is no such row.
        """
        row = self.row(**where)
        if row is None:
            raise KeyError(f"{self.name} has no row with {where}")
        return self._figure(column, row)

    def row(self, **where: Value) -> Row | None:
        """The first row where every named column has the given value."""
        wanted = [(self.index(name), value) for name, value in where.items()]
        return next((row for row in self.rows if all(row[place] == value for place, value in wanted)), None)

    def foot(self, column: str) -> Figure:
        """The value of `column` in the total row; null where there is none."""
        return self._figure(column, self.total or (None,) * len(self.columns))

    def cells(self, column: str) -> list[Value]:
        """All values of a column."""
        place = self.index(column)
        return [row[place] for row in self.rows]

    def _figure(self, column: str, row: Row) -> Figure:
        place = self.index(column)
        about = self.columns[place]
        money = row[self.index(about.currency_in)] if about.currency_in else about.currency
        name = f"{self.name}/{self._name(row)}/{column}"
        return Figure(row[place], about.kind, self.name, None if money is None else str(money), name)

    def row_names(self, most: int | None = None) -> Iterator[str]:
        """The names of the first rows, in order.

        A row is named by what it is about, its texts and days, not by its place: the same row keeps its name when
        others come before it. Rows that are about the same are told apart by their order.
        """
        seen: dict[str, int] = {}
        for row in self.rows[:most]:
            name = hashlib.sha256(framed(*map(str, self._about(row)))).hexdigest()[:_DIGITS]
            seen[name] = seen.get(name, 0) + 1
            yield name if seen[name] == 1 else f"{name}-{seen[name]}"

    def _name(self, row: Row) -> str:
        place = next((place for place, each in enumerate(self.rows) if each is row), None)
        return TOTAL if place is None else list(self.row_names(place + 1))[-1]

    def _about(self, row: Row) -> list[Value]:
        return [value for column, value in zip(self.columns, row, strict=True) if column.kind in _ABOUT]


@dataclass(frozen=True, slots=True)
class Figure:
    """A number in prose, the sheet it can be looked up in, and its name below the period."""

    value: Value
    kind: Kind
    sheet: str
    currency: str | None = None
    name: str = ""


Part = str | Figure


@dataclass(frozen=True, slots=True)
class Prose:
    """A sentence or two; the numbers in it are figures."""

    parts: tuple[Part, ...]


def say(*parts: Part) -> Prose:
    """Prose from text and figures."""
    return Prose(parts)


@dataclass(frozen=True, slots=True)
class Tile:
    """A key figure: a label, the figure, and a remark on how far it is known."""

    label: str
    figure: Figure
    unit: str
    remark: Prose


@dataclass(frozen=True, slots=True)
class Answer:
    """The first thing a reader sees.

    Attributes:
        question: what is answered.
        headline: the answer in one sentence.
        tone: good, warn, bad or open.
        details: what it rests on.
    """

    question: str
    headline: Prose
    tone: str
    details: tuple[Prose, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A picture of a sheet.

    Attributes:
        name: snake_case; unique on the page.
        title, description: read out in place of the picture; the title is printed above it.
        sheet: the sheet whose numbers it shows.
        unit: the unit of its axis.
        draw: plot width in pixels -> a Vega-Lite specification.
        legend: (colour, word) in the order of the picture.
    """

    name: str
    title: str
    description: str
    sheet: str
    unit: str
    draw: Callable[[int], Mapping[str, Any]]
    legend: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Tiles:
    """A row of key figures."""

    tiles: tuple[Tile, ...]


@dataclass(frozen=True, slots=True)
class Words:
    """Definitions: (word, meaning)."""

    words: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading inside a section."""

    text: str


@dataclass(frozen=True, slots=True)
class Steps:
    """Things to do, in order."""

    title: str
    steps: tuple[Prose, ...]


Block = Prose | Tiles | Answer | Chart | Sheet | Words | Heading | Steps


@dataclass(frozen=True, slots=True)
class Section:
    """One section of the report: a file in `sections/`.

    Attributes:
        order: its place.
        title, anchor: its heading and the name links point to.
        query: from a view of the lake to its blocks, in order.
        template: how it is rendered.
    """

    order: int
    title: str
    anchor: str
    query: Callable[[View], tuple[Block, ...]]
    template: str = "section.html"


def sheets_of(blocks: Iterable[Block]) -> list[Sheet]:
    """The sheets among the blocks."""
    return [block for block in blocks if isinstance(block, Sheet)]


def rows_of(frame: pl.DataFrame, columns: Sequence[Column]) -> tuple[Row, ...]:
    """The rows of a frame in the order of the columns."""
    return tuple(frame.select([column.name for column in columns]).rows())
