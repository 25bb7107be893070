"""The page: one HTML file with style and pictures inside it, and nothing that could run or be fetched."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from weighbridge.pipeline.look.look import look
from weighbridge.pipeline.report import svg
from weighbridge.pipeline.report.exact import added
from weighbridge.pipeline.report.format import plain, shown
from weighbridge.pipeline.report.period import Period
from weighbridge.pipeline.report.sheet import BLANK, TOTAL, Block, Chart, Column, Kind, Row, Section, Sheet, Value

# Names up to this length stay on one line where there is room.
SHORT_WORD = 26
# A number with more characters may be broken on paper, where nothing can be scrolled.
LONG_NUMBER = 13
_NUMBER = re.compile(r"[+\u2212]?[0-9,.]+")
TEMPLATES = Path(__file__).parent / "templates"
NOTICE = "Simulated data: every figure on this page comes from traffic the product made up, none from real use."


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell as it is shown.

    Attributes:
        text: what it says.
        style: how it is set.
        unknown: it has no value.
        badge: it is a word of a closed enumeration.
        bar: width of its bar in per cent, where it has one.
        prose: it is a sentence.
        figure: its name below the period, where it is a figure.
    """

    text: str
    style: str
    unknown: bool = False
    badge: bool = False
    bar: str | None = None
    prose: bool = False
    figure: str = ""


def pieces(text: str) -> list[str]:
    """Where a text may be broken: a number of many digits after each separator, anything else nowhere."""
    if len(text) <= LONG_NUMBER or not _NUMBER.fullmatch(text):
        return [text]
    return [part for part in re.split(r"(?<=,)", text) if part]


def render(
    sections: Sequence[tuple[Section, tuple[Block, ...]]],
    period: Period,
    *,
    title: str,
    edition: str,
    simulated: bool,
    digest: str,
    named: bool = True,
) -> str:
    """The whole page; `named`: whether figures bear the names that `explain` takes."""
    room = _room()
    # Figures of a month are named, so that `explain` can be asked about them.
    month = period.month if named and period.month else ""
    worn = look(_SIMULATED_PAPER if simulated else "")
    return room.get_template("page.html").render(
        style=Markup(worn.style),  # noqa: S704 - our own file, not data
        policy=Markup(worn.policy),  # noqa: S704 - our own words and a digest
        sections=[_section(room, section, blocks, period, month) for section, blocks in sections],
        period=period,
        title=title,
        edition=edition,
        simulated=simulated,
        notice=NOTICE,
        digest=digest,
    )


@cache
def _room() -> Environment:
    """The templates; compiled once in a process, however many months it writes."""
    room = Environment(
        loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined, keep_trailing_newline=True
    )
    room.globals.update(plain=plain, shown=shown, pieces=pieces)
    return room


# A page that is torn out still says what it is.
_SIMULATED_PAPER = (
    '@page { @top-center { content: "Simulated data"; font: bold 8pt Arial, sans-serif; color: #7a3b00; } }\n'
)


def _section(
    room: Environment, section: Section, blocks: tuple[Block, ...], period: Period, month: str
) -> dict[str, Any]:
    kept = [block for block in blocks if not isinstance(block, Sheet) or block.page]
    shown_blocks = [{"what": type(block).__name__, "it": _prepared(block, period)} for block in kept]
    body = room.get_template(section.template).render(blocks=shown_blocks, month=month)
    return {"anchor": section.anchor, "title": section.title, "body": Markup(body)}  # noqa: S704 - autoescaped above


def _prepared(block: Block, period: Period) -> object:
    if isinstance(block, Sheet):
        return table(block, period)
    return _drawn(block, period) if isinstance(block, Chart) else block


def _drawn(chart: Chart, period: Period) -> dict[str, Any]:
    pictures = {
        name: Markup(svg.picture(chart, width).replace("<svg ", f'<svg class="{name}" ', 1))  # noqa: S704 - escaped
        for name, width in (("wide", svg.WIDE), ("narrow", svg.NARROW))
    }
    return {"title": chart.title, "meta": _dated(chart.unit, period), "legend": chart.legend, **pictures}


def _dated(unit: str, period: Period) -> str:
    return "; ".join(part for part in (unit, f"{period.label}, {period.zone}") if part)


def table(sheet: Sheet, period: Period) -> dict[str, Any]:
    """A sheet as the templates take it: heads, rows of cells, one row for what is left off, the total."""
    columns = [column for column in sheet.columns if column.page and not _left_off(sheet, column)]
    kept = sheet.rows[: sheet.shown]
    hidden = sheet.rows[len(kept) :]
    rest = _rest(sheet, hidden) if hidden and any(column.adds for column in columns) else None
    return {
        "name": sheet.name,
        "title": sheet.title,
        "meta": _dated(sheet.unit, period) if sheet.dated else sheet.unit,
        "empty": sheet.empty,
        "note": sheet.note,
        "left_off": f"{len(kept):,} of {len(sheet.rows):,} rows are shown here; the files hold all." if hidden else "",
        "heads": [{"label": column.label, "style": "n" if column.numeric else ""} for column in columns],
        "rows": [_cells(sheet, row, columns, name) for row, name in zip(kept, sheet.row_names(len(kept)), strict=True)],
        "named": [_named(sheet, row) for row in kept],
        "rest": _cells(sheet, rest, columns, foot=True) if rest else None,
        "total": _cells(sheet, sheet.total, columns, TOTAL, foot=True) if sheet.total else None,
    }


def _left_off(sheet: Sheet, column: Column) -> bool:
    return column.sparse and all(value == 0 for value in sheet.cells(column.name))


def _rest(sheet: Sheet, hidden: Sequence[Row]) -> Row:
    """What the rows that are not shown add up to; columns that cannot be added stay blank."""
    first = next(place for place, column in enumerate(sheet.columns) if column.page)
    sums: list[Value] = []
    for place, column in enumerate(sheet.columns):
        if place == first:
            sums.append(f"{len(hidden):,} more")
        else:
            sums.append(added([row[place] for row in hidden]) if column.adds else BLANK)
    return tuple(sums)


def _cells(
    sheet: Sheet, row: Row, columns: Sequence[Column], name: str | None = None, *, foot: bool = False
) -> list[Cell]:
    named = _named(sheet, row)
    cells = [named[column.name] for column in columns]
    if name:
        cells = [
            replace(cell, figure=f"{sheet.name}/{name}/{column.name}") if column.numeric else cell
            for cell, column in zip(cells, columns, strict=True)
        ]
    return (
        [replace(cell, style=cell.style.removeprefix("c "), badge=False, bar=None) for cell in cells] if foot else cells
    )


def _named(sheet: Sheet, row: Row) -> dict[str, Cell]:
    return {column.name: _cell(sheet, row, column, value) for column, value in zip(sheet.columns, row, strict=True)}


def _cell(sheet: Sheet, row: Row, column: Column, value: Value) -> Cell:
    currency = row[sheet.index(column.currency_in)] if column.currency_in else column.currency
    text = shown(value, column.kind, None if currency is None else str(currency))
    if column.short and isinstance(value, str):
        text = value[: column.short]
    bar = _bar(value) if column.kind is Kind.SHARE and isinstance(value, Decimal) else None
    return Cell(
        text,
        _style(column, text, value),
        unknown=value is None,
        badge=column.kind is Kind.BADGE and value is not None,
        bar=bar,
        prose=column.kind is Kind.PROSE,
    )


def _bar(share: Decimal) -> str:
    """The width of a bar, in per cent; a share beyond its whole fills it."""
    return f"{min(max(share * 100, Decimal(0)), Decimal(100)):.1f}"


def _style(column: Column, text: str, value: Value) -> str:
    """How a cell is set: numbers flush right, nothing greyed, short words on one line, long names broken anywhere."""
    if column.numeric:
        return "n z" if value == 0 else "n l" if len(pieces(text)) > 1 else "n"
    if column.kind in {Kind.BADGE, Kind.DAY}:
        return "s d"
    return ("c " if column.kind is Kind.CODE else "") + ("s" if len(text) <= SHORT_WORD else "x")
