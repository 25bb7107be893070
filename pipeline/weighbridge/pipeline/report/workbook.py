"""The sheets as one XLSX workbook: a tab for each, exact amounts as text beside a rounded number, fixed timestamps."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import xlsxwriter

from weighbridge.pipeline.report.format import UNKNOWN, plain, rounded
from weighbridge.pipeline.report.sheet import NUMERIC, Column, Kind, Row, Sheet, Value

# A spreadsheet keeps fifteen digits of a number; a longer one is written as text.
EXACT_BELOW = 10**15
CREATED = datetime(2000, 1, 1, tzinfo=UTC).replace(tzinfo=None)
FIRST_ROW = 3
_FORMATS = {
    Kind.COUNT: "#,##0",
    Kind.SIGNED: "+#,##0;-#,##0;0",
    Kind.DECIMAL: "#,##0.###",
    Kind.MEAN: "#,##0.0",
    Kind.MONEY: "#,##0.00##########",
    Kind.SHARE: "0.0%",
    Kind.CHANGE: "+0.0%;-0.0%;0.0%",
    Kind.DAY: "yyyy-mm-dd",
}


def write_workbook(path: Path, sheets: Sequence[Sheet], *, title: str, caption: str, notice: str) -> None:
    """Write the workbook.

    Args:
        path: the file, overwritten.
        sheets: one tab each, in order.
        title, caption: head of every tab: what it is, period and zone.
        notice: a line every tab carries in red, such as that the data is simulated; empty for none.
    """
    book = xlsxwriter.Workbook(
        str(path),
        {
            "in_memory": True,
            "strings_to_formulas": False,
            "strings_to_urls": False,
            "strings_to_numbers": False,
            "default_date_format": _FORMATS[Kind.DAY],
        },
    )
    book.set_properties({"title": title, "subject": caption, "author": "Weighbridge", "created": CREATED})
    styles = _styles(book)
    for sheet in sheets:
        _tab(book.add_worksheet(sheet.name[:31]), sheet, styles, caption=caption, notice=notice)
    book.close()


def _styles(book: Any) -> dict[str, Any]:
    base = {"font_name": "Arial", "font_size": 10}
    styles = {str(kind): book.add_format({**base, "num_format": shape}) for kind, shape in _FORMATS.items()}
    for kind, shape in _FORMATS.items():
        styles[f"{kind} total"] = book.add_format({**base, "num_format": shape, "bold": True, "top": 1})
    return {
        **styles,
        "text": book.add_format({**base, "valign": "top"}),
        "text total": book.add_format({**base, "bold": True, "top": 1}),
        "exact": book.add_format({**base, "align": "right"}),
        "exact total": book.add_format({**base, "align": "right", "bold": True, "top": 1}),
        "head": book.add_format({**base, "bold": True, "bottom": 1, "text_wrap": True, "valign": "bottom"}),
        "title": book.add_format({**base, "bold": True, "font_size": 13}),
        "caption": book.add_format({**base, "font_color": "#52606D"}),
        "notice": book.add_format({**base, "bold": True, "font_color": "#A3211B"}),
    }


def _tab(tab: Any, sheet: Sheet, styles: dict[str, Any], *, caption: str, notice: str) -> None:
    tab.write_string(0, 0, sheet.title, styles["title"])
    said = (sheet.unit, caption if sheet.dated else "")
    tab.write_string(1, 0, "; ".join(part for part in said if part), styles["caption"])
    tab.write_string(2, 0, notice, styles["notice"])
    heads = [head for column in sheet.columns for head in _heads(column)]
    for place, head in enumerate(heads):
        tab.write_string(FIRST_ROW, place, head, styles["head"])
    for offset, row in enumerate(sheet.rows, start=FIRST_ROW + 1):
        _write_row(tab, offset, row, sheet, styles, "")
    if sheet.total:
        _write_row(tab, FIRST_ROW + 1 + len(sheet.rows), sheet.total, sheet, styles, " total")
    _arrange(tab, sheet, len(heads))


def _heads(column: Column) -> list[str]:
    return [column.label, f"{column.label} (exact)"] if column.kind is Kind.MONEY else [column.label]


def _write_row(tab: Any, line: int, row: Row, sheet: Sheet, styles: dict[str, Any], suffix: str) -> None:
    place = 0
    for column, value in zip(sheet.columns, row, strict=True):
        shown = value
        if column.kind is Kind.MONEY and isinstance(value, Decimal):
            shown = rounded(value, _currency(sheet, row, column))
        _write(tab, (line, place), shown, column.kind, styles, suffix)
        if column.kind is Kind.MONEY:
            place += 1
            tab.write_string(line, place, UNKNOWN if value is None else plain(value), styles[f"exact{suffix}"])
        place += 1


def _currency(sheet: Sheet, row: Row, column: Column) -> str | None:
    return str(row[sheet.index(column.currency_in)]) if column.currency_in else column.currency


def _write(tab: Any, at: tuple[int, int], value: Value, kind: Kind, styles: dict[str, Any], suffix: str) -> None:
    if value is None:
        tab.write_string(*at, UNKNOWN, styles[("exact" if kind in NUMERIC else "text") + suffix])
    elif isinstance(value, str):
        tab.write_string(*at, value, styles[f"text{suffix}"])
    elif isinstance(value, date):
        tab.write_datetime(*at, value, styles[f"{Kind.DAY}{suffix}"])
    elif -EXACT_BELOW < value < EXACT_BELOW:
        tab.write_number(*at, float(value), styles[f"{kind}{suffix}"])
    else:
        tab.write_string(*at, plain(value), styles[f"exact{suffix}"])


def _arrange(tab: Any, sheet: Sheet, width: int) -> None:
    """Widths, frozen heads, filters, and a page setup that prints."""
    place = 0
    for column in sheet.columns:
        longest = max((len(plain(value)) for value in [*sheet.cells(column.name), column.label]), default=8)
        for _ in _heads(column):
            tab.set_column(place, place, min(max(longest + 2, 9), 60))
            place += 1
    tab.freeze_panes(FIRST_ROW + 1, 1)
    if sheet.rows:
        tab.autofilter(FIRST_ROW, 0, FIRST_ROW + len(sheet.rows), width - 1)
    tab.set_landscape()
    tab.set_paper(9)
    tab.fit_to_pages(1, 0)
    tab.repeat_rows(FIRST_ROW)
