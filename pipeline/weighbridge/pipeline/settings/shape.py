"""What a knob of the settings can be: a single value of some kind, or a table with one line per key.

A table of the settings file holds lines (`ids = 30`), and below it tables under names that the user chooses
(`[retention.tasks.chat]`). What may stand there is declared as a `Shape`; a mistake is named with its place, what was
found, and what is allowed or nearest.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple


class Kind(NamedTuple):
    """A type of knob: its name in messages, the TOML types it may have, how such a value becomes one of ours.

    `parse` raises ValueError with the values that are allowed. Of a table, `shape` says what it may hold.
    """

    name: str
    types: tuple[type, ...]
    parse: Callable[[Any, Path], object]
    shape: Shape | None = None


class InsideError(ValueError):
    """A line inside a table cannot be used: `at` is its place below the table, the message the rest of the sentence."""

    def __init__(self, at: str, message: str) -> None:
        super().__init__(message)
        self.at = at


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a table: its key, how a value is checked, its default (null: absent unless written), one sentence."""

    name: str
    kind: Kind
    default: object
    doc: str


@dataclass(frozen=True, slots=True)
class Named:
    """Tables below a table, under names the user chooses: `[<table>.<name>.<chosen>]`.

    Attributes:
        name: the key they stand under.
        pattern: what a chosen name must match whole.
        means: what a chosen name is, for messages.
        lines: the keys each of them may have; those without a default are absent unless written.
        default: the ones that are there unless written otherwise, as they would be written.
    """

    name: str
    pattern: str
    means: str
    lines: tuple[Line, ...]
    default: Mapping[str, Mapping[str, object]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Shape:
    """What a table may hold."""

    lines: tuple[Line, ...]
    named: tuple[Named, ...] = ()

    def parse(self, raw: Mapping[str, object] | str, folder: Path) -> dict[str, object]:
        """The whole table, checked, with what was left out at its default.

        Args:
            raw: the table; in the environment the text of one JSON object.
            folder: where relative paths start.

        Raises:
            InsideError: it is no table, or a line of it cannot be used.
        """
        if isinstance(raw, str):
            raw = json_object(raw)
        known: dict[str, Line | Named] = {line.name: line for line in self.lines}
        known |= {named.name: named for named in self.named}
        for key in raw:
            if key not in known:
                raise InsideError(key, f"is unknown; {nearest(key, known)}")
        values = _lines(self.lines, {key: value for key, value in raw.items() if isinstance(known[key], Line)}, folder)
        for item in self.named:
            with _below(item.name):
                values[item.name] = _chosen(item, raw.get(item.name, {}), folder)
        return values


def json_object(text: str) -> dict[str, object]:
    """The JSON object that `text` is.

    Raises:
        InsideError: it is not JSON, or JSON of another type.
    """
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise InsideError("", f"is not JSON ({error}); a table is written as a JSON object here") from None
    if not isinstance(value, dict):
        raise InsideError("", f"is {type_name(value)}; a JSON object is expected")
    return value


def mapping(raw: object) -> Mapping[str, object]:
    """A table as it is written: in the environment and on the command line as the text of a JSON object."""
    return json_object(raw) if isinstance(raw, str) else raw if isinstance(raw, Mapping) else {}


def type_name(raw: object) -> str:
    """What a TOML value is, in words of a message."""
    names = {bool: "true or false", int: "a whole number", float: "a fraction", str: "text", list: "a list"}
    return names.get(type(raw), "a table" if isinstance(raw, dict) else type(raw).__name__)


def nearest(name: str, known: Iterable[str]) -> str:
    """The names there are, after the one that was probably meant, whatever its case."""
    names = list(known)
    folded = {key.lower(): key for key in reversed(names)}
    found = difflib.get_close_matches(name.lower(), folded, n=1, cutoff=0.5)
    hint = f"did you mean {folded[found[0]]}? " if found else ""
    return f"{hint}Known are {', '.join(names)}"


@contextmanager
def _below(name: str) -> Iterator[None]:
    """Errors from inside get `name` before their place."""
    try:
        yield
    except InsideError as error:
        raise InsideError(f"{name}.{error.at}" if error.at else name, str(error)) from error


def _lines(lines: tuple[Line, ...], raw: Mapping[str, object], folder: Path) -> dict[str, object]:
    known = {line.name: line for line in lines}
    values = {line.name: line.kind.parse(line.default, folder) for line in lines if line.default is not None}
    for key, value in raw.items():
        if key not in known:
            raise InsideError(key, f"is unknown; {nearest(key, known)}")
        kind, doc = known[key].kind, known[key].doc
        if not isinstance(value, kind.types) or (isinstance(value, bool) and bool not in kind.types):
            raise InsideError(key, f"is {type_name(value)}; {kind.name} is expected: {doc}")
        try:
            values[key] = kind.parse(value, folder)
        except InsideError as error:  # a kind of which values are not shown
            raise InsideError(key, str(error)) from None
        except ValueError as error:
            raise InsideError(key, f"is {value!r}; allowed is {error}") from error
    return values


def _chosen(named: Named, raw: object, folder: Path) -> dict[str, object]:
    if not isinstance(raw, Mapping):
        raise InsideError("", f"is {type_name(raw)}; a table is expected for each, under {named.means}")
    tables: dict[str, object] = {}
    for chosen in dict.fromkeys((*named.default, *raw)):
        written = raw.get(chosen, {})
        if not re.fullmatch(named.pattern, chosen):
            raise InsideError("", f"has a table of which the name is not {named.means}")
        if not isinstance(written, Mapping):
            raise InsideError(chosen, f"is {type_name(written)}; a table is expected")
        with _below(chosen):
            tables[chosen] = _lines(named.lines, {**named.default.get(chosen, {}), **written}, folder)
    return tables
