"""Bills that are tables: CSV, JSON Lines or Parquet with one charge a row, under the column names of their provider.

A `Shape` says which of their columns is what. Names are compared without case, blanks, `_` and `/`, so that
`lineItem/UnblendedCost` and `line_item_unblended_cost` are one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

from weighbridge.pipeline.ingest.charges.charge import Charge, ChargeRows, refusal
from weighbridge.pipeline.ingest.charges.figures import amount, moment
from weighbridge.pipeline.ingest.importer import Heading, Source
from weighbridge.pipeline.ingest.tabular import Layout, check, kind_of, names_of, read
from weighbridge.schemas.enumerations import ChargeCategory, QuarantineReason
from weighbridge.schemas.errors import WeighbridgeError
from weighbridge.schemas.leaves import Refusal
from weighbridge.schemas.segment import sha256_file

Row = Mapping[str, object]
Made = Charge | list[Refusal]
_PLAIN = re.compile(r"[\s_/]+")
LAYOUT = Layout()
# Amounts a line may have beside what is billed.
MONEY = ("list_amount", "contracted_amount", "effective_amount", "pricing_amount", "payment_amount")


@dataclass(frozen=True, slots=True)
class Shape:
    """What the columns of a table mean.

    Attributes:
        columns: our name -> their names; the first that is there is read.
        needed: of ours: without these a file is no such table.
        about: of ours: what a line is about, so what it is known by.
    """

    columns: Mapping[str, Sequence[str]]
    needed: Sequence[str]
    about: Sequence[str] = field(default_factory=tuple)

    def fits(self, names: Sequence[str]) -> bool:
        """Whether a table with these column names is one."""
        return set(self.needed) <= self.theirs(names).keys()

    def theirs(self, names: Sequence[str]) -> dict[str, str]:
        """Our name -> the column of this table."""
        plain: dict[str, str] = {}
        for name in names:
            plain.setdefault(folded(name), name)
        found = {}
        for ours, candidates in self.columns.items():
            there = next((plain[folded(each)] for each in candidates if folded(each) in plain), None)
            if there is not None:
                found[ours] = there
        return found


def folded(name: str) -> str:
    """A column name as it is compared."""
    return _PLAIN.sub("", name).lower()


def recognises(path: Path, shape: Shape, layout: Layout = LAYOUT) -> bool:
    """Whether a file is such a table. Never raises."""
    if not path.is_file() or kind_of(path) in {None, "jsonl"}:
        return False
    try:
        return shape.fits(names_of(path, layout))
    except (WeighbridgeError, OSError):
        return False


def checked(source: Source, shape: Shape, layout: Layout = LAYOUT) -> Heading:
    """Look at the whole file.

    Raises:
        ContractError: it cannot be taken apart.
        ConfigError: a column is there twice.
    """
    names = names_of(source.path, layout)
    check(source.path, layout, list(dict.fromkeys(shape.theirs(names).values())))
    return Heading(sha256_file(source.path), source.path.stat().st_size)


def rows_of(source: Source, shape: Shape, layout: Layout = LAYOUT) -> Iterator[tuple[int, Row | QuarantineReason]]:
    """Row number, and what it holds under our names; or why it could not be taken apart."""
    theirs = shape.theirs(names_of(source.path, layout))
    table = read(source.path, layout, list(dict.fromkeys(theirs.values())))
    for line, row in zip(table.lines, table.columns.iter_rows(named=True), strict=True):
        yield int(line), {ours: _plain(row[name]) for ours, name in theirs.items()}
    yield from table.bad


def read_charges(
    source: Source, shape: Shape, name: str, charge: Callable[[Row, Source], Made], layout: Layout = LAYOUT
) -> ChargeRows:
    """The charges of a table."""
    rows = ChargeRows(source, name)
    for line, row in rows_of(source, shape, layout):
        if isinstance(row, QuarantineReason):
            rows.add(Refusal("", row), line)
        else:
            rows.add(charge(row, source), line)
    return rows


def measured(row: Row, *, start: str = "start", end: str = "end") -> tuple[dict[str, object], list[Refusal]]:
    """The amounts and times of a row, and what of them cannot be read.

    Returns:
        start, end, amount, quantity, money (the other amounts), billing_start, billing_end, issued_at, notes.
    """
    refused: list[Refusal] = []
    notes: list[str] = []
    found: dict[str, Decimal | None] = {}
    for name in ("amount", "quantity", *MONEY):
        read_ = amount(row.get(name))
        if read_.reason is not None:
            refused.append(refusal(name, read_.reason))
        found[name] = read_.value
        notes += [read_.note] if read_.note else []
    if found["amount"] is None and not refused:
        refused.append(refusal("amount", QuarantineReason.MISSING_FIELD))
    times: dict[str, datetime | None] = {}
    for ours, name in (
        ("start", start),
        ("end", end),
        *((n, n) for n in ("billing_start", "billing_end", "issued_at")),
    ):
        times[ours] = moment(row.get(name))
        if times[ours] is None and (row.get(name) is not None or ours in {"start", "end"}):
            refused.append(refusal(f"period_{ours}" if ours in {"start", "end"} else ours, QuarantineReason.BAD_TIME))
    begin, stop = times["start"], times["end"]
    if begin is not None and stop is not None and stop < begin:
        refused.append(refusal("period_end", QuarantineReason.BAD_TIME))
    money = {name: found[name] for name in MONEY}
    return {
        **times,
        "amount": found["amount"],
        "quantity": found["quantity"],
        "money": money,
        "notes": tuple(notes),
    }, refused


def text(row: Row, name: str) -> str | None:
    """A value as text, null where there is none."""
    value = row.get(name)
    return None if value is None or value == "" else str(value)


def about(row: Row, shape: Shape) -> tuple[str, ...]:
    """What a line is about, in the order of the shape."""
    return tuple(f"{name}={text(row, name) or ''}" for name in shape.about)


def category(told: str | None) -> ChargeCategory | None:
    """A FOCUS category, in any case; null for a word that is none."""
    return next((each for each in ChargeCategory if told is not None and each.lower() == told.lower()), None)


def details(told: str | None) -> Mapping[str, object]:
    """A JSON object inside a cell; empty where it is none."""
    if told is None or not told.startswith("{"):
        return {}
    try:
        found = json.loads(told, parse_float=Decimal)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _plain(value: object) -> object:
    """A cell as text or number; dates as ISO text, lists and structures as JSON where that can be had."""
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, list | dict):
        return json.dumps(value, default=str)
    return value
