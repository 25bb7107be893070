"""Rates of currencies by day: reference rates of the European Central Bank, or a table base, quote, date, rate (CSV).

    Date,USD,JPY,...                 one euro in each of them; N/A where there was no rate
    base,quote,date,rate             one unit of base in quote

A day without a rate stays without: nobody's rate of another day stands in for it unless a contract says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, datetime
from pathlib import Path

from weighbridge.pipeline.ingest.charges.charge import RATE, ChargeRows
from weighbridge.pipeline.ingest.charges.figures import amount
from weighbridge.pipeline.ingest.importer import Heading, Importer, Source, Staged
from weighbridge.pipeline.ingest.tabular import Layout, check, kind_of, names_of, read
from weighbridge.schemas.enumerations import QuarantineReason
from weighbridge.schemas.errors import WeighbridgeError
from weighbridge.schemas.leaves import Refusal
from weighbridge.schemas.segment import sha256_file

NAME = "currency-rates"
BASE = "EUR"
_LONG = ("base", "quote", "date", "rate")
_CODE = re.compile(r"\s*([A-Z]{3})\s*")
_FORMS = ("%Y-%m-%d", "%d %B %Y")
_LAYOUT = Layout(nulls=("", "NULL", "N/A", "-"))


def _columns(names: list[str]) -> list[str] | None:
    """The columns that are read; null for a file of something else."""
    if set(_LONG) <= set(names):
        return list(_LONG)
    codes = [name for name in names[1:] if name.strip()]
    if names[:1] == ["Date"] and codes and all(_CODE.fullmatch(name) for name in codes):
        return ["Date", *codes]
    return None


def _recognises(path: Path) -> bool:
    if not path.is_file() or kind_of(path) != "csv":
        return False
    try:
        return _columns(names_of(path, _LAYOUT)) is not None
    except (WeighbridgeError, OSError):
        return False


def _check(source: Source) -> Heading:
    check(source.path, _LAYOUT, _columns(names_of(source.path, _LAYOUT)) or list(_LONG))
    return Heading(sha256_file(source.path), source.path.stat().st_size)


def _read(source: Source, heading: Heading) -> Staged:  # noqa: ARG001 - one signature for all importers
    columns = _columns(names_of(source.path, _LAYOUT)) or list(_LONG)
    table = read(source.path, _LAYOUT, columns)
    rows = ChargeRows(source, NAME)
    for line, row in zip(table.lines, table.columns.iter_rows(named=True), strict=True):
        rates = list(_long(row) if columns == list(_LONG) else _wide(row))
        refused = [each for each in rates if isinstance(each, Refusal)]
        if refused or not rates:
            rows.add(refused or Refusal(f"{RATE}.rate", QuarantineReason.MISSING_FIELD), int(line))
            continue
        rows.add_rows(RATE, [each for each in rates if not isinstance(each, Refusal)], int(line))
    for line, reason in table.bad:
        rows.add(Refusal("", reason), line)
    return rows.staged()


def _wide(row: dict[str, str | None]) -> Iterator[dict[str, object] | Refusal]:
    for name, told in row.items():
        if name != "Date" and told is not None:
            yield _rate(BASE, name.strip(), row["Date"], told)


def _long(row: dict[str, str | None]) -> Iterator[dict[str, object] | Refusal]:
    yield _rate(row["base"], row["quote"], row["date"], row["rate"])


def _rate(base: str | None, quote: str | None, day: str | None, told: str | None) -> dict[str, object] | Refusal:
    read_, on = amount(told), _day(day or "")
    if on is None:
        return Refusal(f"{RATE}.rate_day", QuarantineReason.BAD_TIME)
    if read_.value is None or read_.value <= 0:
        return Refusal(f"{RATE}.rate", read_.reason or QuarantineReason.SCHEMA)
    if not _CODE.fullmatch(base or "") or not _CODE.fullmatch(quote or ""):
        return Refusal(f"{RATE}.base", QuarantineReason.BAD_IDENTIFIER)
    return {"base": (base or "").strip(), "quote": (quote or "").strip(), "rate_day": on, "rate": read_.value}


def _day(text: str) -> date | None:
    for form in _FORMS:
        try:
            return datetime.strptime(text.strip(), form).date()  # noqa: DTZ007 - a calendar day has no zone
        except ValueError:
            continue
    return None


IMPORTER = Importer(
    name="currency_rates",
    doc="Rates of currencies by day: the European Central Bank's reference rates, or base, quote, date, rate.",
    recognises=_recognises,
    check=_check,
    read=_read,
)
