"""Files of other systems' logs: the same records as JSON, JSON Lines or CSV, of which only named fields are looked at.

A CSV cell is text. Fields that are numbers or objects by nature are read as such, so that an importer sees one kind of
record: `"1200"` in a column of counts is 1200, `"{...}"` in a column of objects is the object. What does not read as
one stays the text it is, and is then refused where a number belongs. In JSON nothing is turned into anything.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from functools import cache
from itertools import islice
from pathlib import Path

from weighbridge.pipeline.ingest.importer import Heading, Source
from weighbridge.pipeline.ingest.json_lines import Line, parse
from weighbridge.pipeline.ingest.json_records import is_json, read_records
from weighbridge.pipeline.ingest.log_heads import heading, read_through
from weighbridge.pipeline.ingest.log_leaves import PATH, named_leaves
from weighbridge.pipeline.ingest.parts import INTEGRAL_FLOAT, STRINGS_DROPPED, Part
from weighbridge.pipeline.ingest.tabular import CSV, Layout, kind_of, names_of, read
from weighbridge.schemas.enumerations import Ended, QuarantineReason, ReportPart
from weighbridge.schemas.errors import ContractError
from weighbridge.schemas.leaves import Flattened, Refusal, flatten
from weighbridge.schemas.segment import sha256_file

_PEEK = 20
_INTEGER = re.compile(r"[+-]?\d{1,400}")
_DECIMAL = re.compile(
    r"[+-]?(\d{1,400}\.?\d{0,400}|\.\d{1,400})(e[+-]?\d{1,3})?|[+-]?(nan|inf|infinity)", re.IGNORECASE
)
# What stands in place of bytes that are no UTF-8: two names that differ only in such a byte would become one.
_LOST = "\ufffd"
_HUGE = 10**40  # any integer of more digits is as unreadable as this one
# What exports write for a value that is not there.
_NULLS = ("", "NULL", "None", "\\N")


@dataclass(frozen=True, slots=True)
class LogFormat:
    """Where the records of a log stand in a file, and which of their fields are looked at.

    Attributes:
        fields: every field an importer may look at; of CSV no other column is read. None where there is no CSV.
        numbers: of them, those that are numbers; objects: those that hold JSON.
        lists: the keys under which a JSON document holds its records.
        marks: a record is of this log where it has all fields of one of these sets.
        what: how the log is called in a message.
    """

    fields: frozenset[str]
    numbers: frozenset[str]
    objects: frozenset[str]
    lists: tuple[str, ...]
    marks: tuple[frozenset[str], ...]
    what: str

    def marked(self, names: Collection[str]) -> bool:
        """Whether a record with these fields is of this log."""
        found = names.keys() if isinstance(names, dict) else set(names)
        return any(found >= mark for mark in self.marks)

    def records(self, path: Path) -> Iterator[Line]:
        """The records of a file, in order, numbered from 0.

        Raises:
            ContractError: the file cannot be taken apart.
        """
        return self._rows(path) if kind_of(path) == CSV else read_records(path, self.lists)

    def recognises(self, path: Path) -> bool:
        """Whether a file holds records of this log. Never raises."""
        try:
            if path.is_file() and kind_of(path) == CSV:
                return bool(self.fields) and self.marked(names_of(path, Layout()))
            return is_json(path) and any(
                line.value is not None and self.marked(line.value) for line in islice(self.records(path), _PEEK)
            )
        except (ContractError, OSError):
            return False

    def check(self, source: Source) -> Heading:
        """Look at the whole file before anything is written.

        Raises:
            ContractError: it cannot be read at all.
        """
        path = source.path
        if kind_of(path) != CSV:
            return heading(path, self.records, f"export of {self.what}", "Export it again as JSON Lines, in UTF-8")
        read_through(path)
        names = names_of(path, Layout())
        if not self.fields or not self.marked(names):
            raise ContractError(f"{path} {self._lacks()}")
        twice = sorted(name for name, times in Counter(names).items() if times > 1 and name in self.fields)
        if twice:
            raise ContractError(
                f"{path} has the column {', '.join(twice)} more than once, and nothing says which of them counts. "
                "Export it with one of each; nothing was written."
            )
        return Heading(sha256_file(path), path.stat().st_size)

    def _lacks(self) -> str:
        fields = " or ".join(", ".join(sorted(mark)) for mark in self.marks)
        return (
            f"has no columns {fields}: it is no export of {self.what}. "
            "Export it with these columns, or describe it in a mapping file and give that with --mapping."
        )

    def _rows(self, path: Path) -> Iterator[Line]:
        there = [name for name in names_of(path, Layout()) if name in self.fields]
        rows = read(path, Layout(nulls=_NULLS), list(dict.fromkeys(there)))
        bad = iter(sorted(rows.bad))
        torn = next(bad, None)
        for number, values in zip(rows.lines, rows.columns.iter_rows(named=True), strict=True):
            while torn is not None and torn[0] < number:
                yield Line(torn[0], None, torn[1])
                torn = next(bad, None)
            if any(_LOST in value for name, value in values.items() if value and name not in self.objects):
                yield Line(number, None, QuarantineReason.SCHEMA)
            else:
                yield Line(number, {name: self._typed(name, value) for name, value in values.items()})
        while torn is not None:
            yield Line(torn[0], None, torn[1])
            torn = next(bad, None)

    def _typed(self, name: str, value: str | None) -> object:
        if value is None:
            return None
        if name in self.numbers:
            return number_of(value)
        return object_of(value) if name in self.objects else value


def number_of(text: str) -> int | Decimal | str:
    """The number that a text is, digit by digit; the text itself where it is none."""
    if _INTEGER.fullmatch(text):
        digits = text.lstrip("+-")
        size = _HUGE if len(digits) > len(str(_HUGE)) else int(digits)
        return -size if text.startswith("-") else size
    return Decimal(text) if _DECIMAL.fullmatch(text) else text


def object_of(value: object) -> object:
    """The JSON object or list that a text holds; any other value as it is."""
    if not isinstance(value, str) or not value.lstrip().startswith(("{", "[")):
        return value
    held, reason = parse(b'{"held":' + value.encode("utf-8", "surrogatepass") + b"}")
    return value if reason is not None or held is None else held["held"]


def first(record: Mapping[str, object], names: Sequence[str]) -> object:
    """The value of the first of these fields that has one."""
    for name in names:
        value = record.get(name)
        if value is not None and value != "":
            return value
    return None


def part_of(leaves: Flattened, ended: Ended) -> list[Part]:
    """The part these leaves are; none where nothing was told."""
    notes: tuple[str, ...] = (INTEGRAL_FLOAT,) if leaves.integral_floats else ()
    notes += (STRINGS_DROPPED,) if leaves.dropped_strings else ()
    return [Part(ReportPart.WHOLE, leaves, ended, notes)] if leaves.leaves or leaves.refusals else []


def leaves_of(container: str, held: object, names: Collection[str], key: bytes) -> Flattened:
    """The leaves of a usage object of a log: what is named below its container, everything else below `usage`.

    Args:
        container: where the named ones stand.
        held: the object; anything else is refused, null has none.
        names: paths below the container.
        key: the installation's pseudonym key, which names unknown keys.
    """
    if held is None:
        return Flattened()
    if not isinstance(held, dict):
        return Flattened(refusals=[Refusal(container, QuarantineReason.NOT_AN_OBJECT)])
    named: dict[str, object] = {}
    rest = _apart(held, _placed(container, tuple(names)), named)
    found = named_leaves(named)
    return joined(found, flatten(rest, key, "usage")) if rest else found


@dataclass(frozen=True, slots=True)
class _Place:
    """What a key leads to: the path of a named number, if it holds one, and what is inside, if it holds an object."""

    path: str | None = None
    inside: dict[str, _Place] = field(default_factory=dict)


@cache
def _placed(container: str, names: tuple[str, ...], prefix: str = "") -> dict[str, _Place]:
    """Key -> what it leads to. A dot in a name may stand between two keys, or in one."""
    below = [name.removeprefix(prefix) for name in names if name.startswith(prefix)]
    keys = {".".join(steps[: at + 1]) for name in below for steps in [name.split(".")] for at in range(len(steps))}
    return {
        key: _Place(
            f"{container}.{prefix}{key}" if key in below else None, _placed(container, names, f"{prefix}{key}.")
        )
        for key in keys
    }


_NOWHERE = _Place()


def _apart(held: dict[str, object], places: dict[str, _Place], named: dict[str, object]) -> dict[str, object]:
    """What is left of an object once the named numbers in it are taken out."""
    rest: dict[str, object] = {}
    for name, value in held.items():
        place = places.get(name, _NOWHERE)
        if isinstance(value, dict):
            left = _apart(value, place.inside, named)
            if left or not value:
                rest[name] = left
        elif place.path is not None:
            named[place.path] = value
        else:
            rest[name] = value
    return rest


def joined(*several: Flattened) -> Flattened:
    """The leaves of several objects of one record together, in the order of their paths."""
    out = Flattened()
    for one in several:
        out.leaves += one.leaves
        out.refusals += one.refusals
        out.dropped_strings += one.dropped_strings
        out.integral_floats += one.integral_floats
    out.leaves.sort(key=PATH)
    out.refusals.sort()
    return out


def microseconds(start: datetime | None, end: datetime | None) -> int | None:
    """How long it took from one time to another; null where one is not known or it would be negative."""
    if start is None or end is None or end < start:
        return None
    return (end - start) // timedelta(microseconds=1)
