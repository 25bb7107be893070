"""A blinded sheet as files: CSV, a workbook, and a page that runs without any server and saves verdicts as CSV.

They hold prompts and answers in clear: files are made with mode 0600, and belong where content may lie.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Sequence
from datetime import datetime
from html import escape
from pathlib import Path
from typing import Any, Final

from weighbridge.pipeline.compare.blind import Item
from weighbridge.pipeline.compare.verdicts import VERDICTS
from weighbridge.schemas.errors import ConfigError

COLUMNS: Final = ("item", "prompt", "A", "B", "verdict")
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
_CELL: Final = 32_000  # a cell of a workbook holds little more
_PAGE: Final = Path(__file__).with_name("sheet.html")


def write_sheet(folder: Path, items: Sequence[Item]) -> list[Path]:
    """Write the sheet in its three forms; their paths.

    Raises:
        ConfigError: the folder is not empty, or there is nothing to judge.
    """
    if not items:
        raise ConfigError("every answer is that of the baseline; there is nothing to judge")
    if folder.exists() and any(folder.iterdir()):
        raise ConfigError(f"{folder} is not empty; name a new folder for the sheet")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    made = {
        "sheet.csv": _csv(items),
        "sheet.html": _page(items),
        "sheet.xlsx": _workbook(items),
    }
    for name, content in made.items():
        handle = os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
    return [folder / name for name in made]


def _rows(items: Sequence[Item]) -> list[tuple[str, ...]]:
    return [(item.item, *map(_harmless, (item.prompt, item.a, item.b)), "") for item in items]


def _harmless(text: str) -> str:
    """Text that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(_FORMULA) else text


def _csv(items: Sequence[Item]) -> bytes:
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(_rows(items))
    return out.getvalue().encode("utf-8-sig")


def _workbook(items: Sequence[Item]) -> bytes:
    import xlsxwriter  # noqa: PLC0415 - only who asks for a sheet needs it

    out = io.BytesIO()
    options = {"in_memory": True, "strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False}
    book: Any = xlsxwriter.Workbook(out, options)
    book.set_properties({"title": "Blinded answers", "author": "Weighbridge", "created": datetime(2000, 1, 1)})  # noqa: DTZ001 - the format has no zone
    page = book.add_worksheet("sheet")
    wrapped = book.add_format({"text_wrap": True, "valign": "top"})
    page.set_column(0, 0, 14)
    page.set_column(1, 3, 60, wrapped)
    for column, name in enumerate(COLUMNS):
        page.write_string(0, column, name)
    for number, row in enumerate(_rows(items), start=1):
        for column, value in enumerate(row):
            page.write_string(number, column, value[:_CELL], wrapped)
    last = len(COLUMNS) - 1
    page.data_validation(1, last, len(items), last, {"validate": "list", "source": list(VERDICTS)})
    page.freeze_panes(1, 1)
    book.close()
    return out.getvalue()


def _page(items: Sequence[Item]) -> bytes:
    """The page: every text is escaped, and nothing is fetched."""
    blocks = []
    for number, item in enumerate(items, start=1):
        choices = "".join(
            f'<label><input type="radio" name="{item.item}" value="{word}"> {word}</label>' for word in VERDICTS
        )
        blocks.append(
            f'<section id="i{item.item}"><h2>{number} of {len(items)}</h2>'
            f'<pre class="prompt">{escape(item.prompt)}</pre>'
            f'<div class="sides"><div><h3>A</h3><pre>{escape(item.a)}</pre></div>'
            f"<div><h3>B</h3><pre>{escape(item.b)}</pre></div></div><p>{choices}</p></section>"
        )
    return _PAGE.read_text(encoding="utf-8").replace("<!-- items -->", "\n".join(blocks)).encode()
