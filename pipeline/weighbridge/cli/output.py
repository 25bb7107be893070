"""What goes to standard output: one JSON document, or tables for people."""

from __future__ import annotations

import io
import json
import sys
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import IO

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

PIPED_WIDTH = 10_000  # what is read by a program is not wrapped


def write(what: RenderableType) -> None:
    """A table or tree. Cells are taken as they are: no mark-up, no emoji names, no colouring of numbers."""
    if sys.stdout.isatty():
        _console(sys.stdout, None).print(what)
        return
    held = io.StringIO()
    _console(held, PIPED_WIDTH).print(what)
    sys.stdout.writelines(line.rstrip() + "\n" for line in held.getvalue().splitlines())


def _console(file: IO[str], width: int | None) -> Console:
    return Console(file=file, markup=False, highlight=False, emoji=False, soft_wrap=True, width=width)


def write_json(value: object, *, lines: bool = False) -> None:
    """One JSON document: indented, or on one line where the output is one document a line."""
    text = json.dumps(plain(value), ensure_ascii=False, indent=None if lines else 1, allow_nan=False)
    sys.stdout.write(text + "\n")


def plain(value: object) -> object:
    """`value` as JSON holds it: exact decimals and days as text, null for what is unknown."""
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, Decimal):
        return exact(value)
    if isinstance(value, date):  # a datetime is one too
        return value.isoformat()
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, str):
        return str(value)
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in (sorted(value) if isinstance(value, (set, frozenset)) else value)]
    return value


def exact(value: Decimal) -> str:
    """All digits of an amount, without the zeros that only fill the places of its column."""
    digits = format(value, "f")
    return digits.rstrip("0").rstrip(".") if "." in digits else digits


def shown(value: object) -> str:
    """A value as people read it: grouped thousands, a dash for unknown, no control character."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, Decimal):
        return exact(value)
    if isinstance(value, (list, tuple)):
        return ", ".join(shown(item) for item in value)
    text = value.isoformat() if isinstance(value, date) else str(value)
    return "".join("?" if unicodedata.category(mark) in {"Cc", "Cf", "Cs"} else mark for mark in text)


def write_table(names: Sequence[str], rows: Iterable[Sequence[object]], *, title: str | None = None) -> None:
    """A table. Columns that hold numbers only are set to the right."""
    held = [list(row) for row in rows]
    table = Table(title=title, title_justify="left", header_style="bold", show_edge=False, pad_edge=False)
    for index, name in enumerate(names):
        cells = [row[index] for row in held if row[index] is not None]
        numbers = bool(cells) and all(isinstance(cell, (int, Decimal)) and not isinstance(cell, bool) for cell in cells)
        table.add_column(name, justify="right" if numbers else "left", overflow="fold")
    for row in held:
        table.add_row(*(Text(shown(cell)) for cell in row))
    write(table)


def counted(number: int, noun: str) -> str:
    """A number of things: `1 row`, `2 rows`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def write_notice(text: str) -> None:
    """A line that is no part of the answer, on standard error."""
    sys.stderr.write(text + "\n")


def write_line(text: str = "") -> None:
    """A line for people."""
    sys.stdout.write(text + "\n")
