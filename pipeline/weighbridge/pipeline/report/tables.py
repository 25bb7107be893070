"""The sheets as CSV files: exact values, no separators, one header line of names with their units."""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Iterable

from weighbridge.pipeline.report.format import plain
from weighbridge.pipeline.report.sheet import NUMERIC, Kind, Sheet, Value

# A text that begins with one of these is a formula to a spreadsheet.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def csv_bytes(sheet: Sheet) -> bytes:
    """A sheet as UTF-8 CSV with line feeds. The total row is left out: it can be had by adding up."""
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([column.name for column in sheet.columns])
    kinds = [column.kind for column in sheet.columns]
    for row in sheet.rows:
        writer.writerow([_cell(value, kind) for value, kind in zip(row, kinds, strict=True)])
    return out.getvalue().encode()


def _cell(value: Value, kind: Kind) -> str:
    text = plain(value)
    return harmless(text) if kind not in NUMERIC else text


def harmless(text: str) -> str:
    """Text that no spreadsheet takes for a formula: an apostrophe stands before one that would be."""
    return f"'{text}" if text.startswith(_FORMULA) else text


def digest_of(sheets: Iterable[Sheet]) -> str:
    """SHA-256 over the CSV files in order, each after its name: the figures of a report in one number."""
    state = hashlib.sha256()
    for sheet in sheets:
        content = csv_bytes(sheet)
        state.update(f"{sheet.name} {len(content)}\n".encode())
        state.update(content)
    return state.hexdigest()
