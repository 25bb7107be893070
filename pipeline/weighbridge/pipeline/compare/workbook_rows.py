"""The cells of the first sheet of a workbook as text: enough to read verdicts that somebody saved as XLSX.

A workbook is a zip file of XML. Declarations of entities are refused, and parts beyond a bound are not read, so that a
file somebody sent cannot swell.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Final
from xml.parsers import expat

from weighbridge.schemas.errors import ContractError

_MOST: Final = 256 << 20
_STRINGS: Final = "xl/sharedStrings.xml"
_SHEET: Final = "xl/worksheets/sheet1.xml"
_PLACE: Final = re.compile(r"([A-Z]{1,3})(\d{1,7})")


def workbook_rows(path: Path) -> list[dict[str, str]]:
    """The rows below the first one, by the names in it.

    Raises:
        ContractError: it is no workbook, or one that declares entities or is too large.
    """
    try:
        with zipfile.ZipFile(path) as book:
            strings = _strings(_part(book, _STRINGS)) if _STRINGS in book.namelist() else []
            cells = _cells(_part(book, _SHEET), strings)
    except (OSError, zipfile.BadZipFile, KeyError, expat.ExpatError, ValueError, IndexError) as error:
        raise ContractError(f"{path} cannot be read as a workbook ({type(error).__name__}); save it as CSV") from None
    names = {column: text for (row, column), text in cells.items() if row == 1}
    rows: dict[int, dict[str, str]] = {}
    for (row, column), text in sorted(cells.items()):
        if row > 1 and column in names:
            rows.setdefault(row, {})[names[column]] = text
    return [rows[row] for row in sorted(rows)]


def _part(book: zipfile.ZipFile, name: str) -> bytes:
    if book.getinfo(name).file_size > _MOST:
        raise ValueError("too large")
    return book.read(name)


def _parse(data: bytes, start: Callable[[str, dict[str, str]], None], end: Callable[[str], None],
           text: Callable[[str], None]) -> None:  # fmt: skip
    parser = expat.ParserCreate()

    def refuse(*_: object) -> None:
        raise ValueError("entities are declared")

    parser.EntityDeclHandler = refuse
    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = text
    parser.Parse(data, True)


def _strings(data: bytes) -> list[str]:
    out: list[str] = []
    inside = False

    def start(name: str, _: dict[str, str]) -> None:
        nonlocal inside
        if name == "si":
            out.append("")
        inside = name == "t"

    def end(name: str) -> None:
        nonlocal inside
        inside = inside and name != "t"

    def text(part: str) -> None:
        if inside:
            out[-1] += part

    _parse(data, start, end, text)
    return out


def _cells(data: bytes, strings: list[str]) -> dict[tuple[int, str], str]:
    """(row, letters of the column) -> text."""
    out: dict[tuple[int, str], str] = {}
    place, kind, held, inside = "", "", "", False

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal place, kind, held, inside
        if name == "c":
            place, kind, held = attributes.get("r", ""), attributes.get("t", ""), ""
        inside = name in {"v", "t"}

    def end(name: str) -> None:
        nonlocal inside
        inside = inside and name not in {"v", "t"}
        found = _PLACE.fullmatch(place)
        if name == "c" and held and found:
            out[int(found[2]), found[1]] = strings[int(held)] if kind == "s" else held

    def text(part: str) -> None:
        nonlocal held
        if inside:
            held += part

    _parse(data, start, end, text)
    return out
