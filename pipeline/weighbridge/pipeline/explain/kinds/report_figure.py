"""A figure of the monthly report, by the name the page shows: 2026-03/usage_by_model/1f0c22d9/tokens."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from weighbridge.pipeline.explain.about import SHOWN_ATTEMPTS
from weighbridge.pipeline.explain.kind import Asked, Kind
from weighbridge.pipeline.explain.kinds import finding
from weighbridge.pipeline.explain.kinds.attempt import attempts_node
from weighbridge.pipeline.explain.sources import behind_sheets
from weighbridge.pipeline.lake.lake import Lake
from weighbridge.pipeline.reconcile.found.tally import hexadecimal
from weighbridge.pipeline.reconcile.frames import KEY
from weighbridge.pipeline.reconcile.tree.node import Node
from weighbridge.pipeline.report.facts import facts
from weighbridge.pipeline.report.period import MONTH
from weighbridge.pipeline.report.report import contents
from weighbridge.pipeline.report.sheet import BLANK, TOTAL, Row, Sheet, sheets_of
from weighbridge.pipeline.report.view import View

# What a column of a sheet is called among the facts about attempts.
_FACTS = {name: name for name in ("provider", "model", "tenant", "task", "route", "status")} | {"day": "on"}
_FINDING = "finding_id"
_PARTS = 4


def find(asked: Asked) -> Iterator[str]:
    """The figure that is called so, where a report of its month has it."""
    if _looked_up(asked) is not None:
        yield asked.name


def node(asked: Asked, held: str) -> Node:
    """The tree behind a figure of a report: what it is about, the tables it is made of, the largest of its attempts."""
    found = _looked_up(asked)
    assert found is not None
    view, sheet, row = found
    column = held.rsplit("/", 1)[1]
    place = sheet.index(column)
    about = {} if row is sheet.total else _about(sheet, row)
    tables = tuple(Node(table, _rows(asked.lake, table, view)) for table in sheet.sources)
    if about.get(_FINDING):
        behind: tuple[Node, ...] = (_behind_finding(asked, about),)
    elif (room := behind_sheets().get(sheet.name)) and room.of_row:
        behind = room.of_row(asked, view, sheet.name, {} if row is sheet.total else _values(sheet, row))
    else:
        behind = _attempts(asked, view, about, column)
    children = (
        Node("sheet", sheet.title, (Node("column", sheet.columns[place].label),)),
        *(Node(name, value) for name, value in about.items()),
        *((Node("made from", len(tables), tables),) if tables else ()),
        *behind,
    )
    return Node("figure", row[place], children)


def _looked_up(asked: Asked) -> tuple[View, Sheet, Row] | None:
    parts = asked.name.split("/")
    if asked.views is None or len(parts) != _PARTS or not MONTH.fullmatch(parts[0]):
        return None
    view = asked.views(parts[0])
    if view is None:
        return None
    for _, blocks in contents(view):
        for sheet in sheets_of(blocks):
            numeric = {column.name for column in sheet.columns if column.numeric}
            if sheet.name == parts[1] and parts[3] in numeric:
                row = _row(sheet, parts[2])
                return None if row is None else (view, sheet, row)
    return None


def _row(sheet: Sheet, name: str) -> Row | None:
    if name == TOTAL:
        return sheet.total
    return dict(zip(sheet.row_names(), sheet.rows, strict=True)).get(name)


def _about(sheet: Sheet, row: Row) -> dict[str, str]:
    """What a row is about: the values that are no figures."""
    told = zip(sheet.columns, row, strict=True)
    return {column.name: str(value) for column, value in told if not column.numeric and value is not None}


def _values(sheet: Sheet, row: Row) -> dict[str, object]:
    """The same with what is not known, which a sheet may show as blank."""
    told = zip(sheet.columns, row, strict=True)
    return {column.name: None if value == BLANK else value for column, value in told if not column.numeric}


def _rows(lake: Lake, table: str, view: View) -> int:
    """Rows of a table on the days that were read, all where it is not kept by day."""
    daily = "day" in lake.scan(table).collect_schema().names()
    frame = lake.scan(table, first=view.period.read[0], last=view.period.read[1]) if daily else lake.scan(table)
    return int(frame.select(pl.len()).collect(engine="streaming").item())


def _behind_finding(asked: Asked, about: dict[str, str]) -> Node:
    return finding.node(asked, about[_FINDING])


def _attempts(asked: Asked, view: View, about: dict[str, str], column: str) -> tuple[Node, ...]:
    """The attempts of the period that bear the names of the row, the largest first; and what they add up to."""
    rows = view.get(facts)
    names = {_FACTS[name]: value for name, value in about.items() if name in _FACTS}
    own = rows.filter(*(pl.col(name).cast(pl.String) == value for name, value in names.items()))
    if own.is_empty():
        return ()
    by = column if column in own.columns else "tokens"
    first = own.sort(by, *KEY, descending=[True, False, False], nulls_last=True).head(SHOWN_ATTEMPTS)
    added = own[by].cast(pl.Int128) if own.schema[by].is_integer() else own[by]
    total = (Node(f"{by} of all of them", added.sum() if added.count() else None),)
    return (
        Node("attempts", own.height, (*total, *attempts_node(asked, first.select(id=hexadecimal())["id"].to_list()))),
    )


KIND = Kind("figure of a report", "MONTH/SHEET/ROW/COLUMN, as the page shows it", find, node)
