"""A record without what is not read: the answer's text, its vectors, the names of other things.

Whole answers differ in their text, so none is of the form of another; what is left of them here is. Nothing that
decides a reading is left out: parsing is strict about what it leaves out, too, or gives up.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from math import isfinite
from typing import Any

import orjson

from weighbridge.pipeline.ingest.json_lines import MAX_NESTING
from weighbridge.pipeline.ingest.reading import day_of
from weighbridge.pipeline.ingest.recorded import as_record, why_unread
from weighbridge.schemas.leaves import BARE, BESIDE, CONTAINERS

Tree = dict[str, Any]
_RECORD = frozenset({"provider", "api", "model", "usage", "context", "headers", "events"})
_OPTIONS = orjson.OPT_PASSTHROUGH_SUBCLASS | orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_DATACLASS
# An escape that writes a colon, which is how keys are counted.
ESCAPE, _ESCAPED = b"\\u003", b"\\u003a"
# Numbers that are others once they were parsed as 64 bits: too many digits, or an exponent of three.
_BEYOND = re.compile(rb"[0-9]{20}|[-: \t\r,\[][0-9]+(\.[0-9]+)?[eE][-+]?[0-9]{3}")
_PLAIN = frozenset({str, int, bool, float, type(None)})


def _tree() -> Tree:
    """Where usage may stand in a body; null where all that stands there is kept."""
    tree: Tree = dict.fromkeys((*BARE, "status", "type"))
    for container in (*CONTAINERS, *BESIDE):
        at = tree
        *above, last = container.split(".")
        for step in above:
            at = at.setdefault(step, {})
        at[last] = None
    return tree


_TREE = _tree()


def compact(line: bytes, *, escapes: bool = True) -> bytes | None:
    """What of a line is read, as a line of its own; null where the line must be read as it stands.

    Args:
        line: a record.
        escapes: whether `ESCAPE` may be in it.
    """
    if line.count(b"[") + line.count(b"{") > MAX_NESTING or (escapes and _ESCAPED in line.lower()):
        return None
    if _BEYOND.search(line):
        return None
    try:
        record = orjson.loads(line)
        # A key that is named twice is lost in parsing, and with it a colon.
        if type(record) is dict and orjson.dumps(record).count(b":") == line.count(b":"):
            return None if why_unread(record) else orjson.dumps(_small(as_record(record)))
    except ValueError:
        pass
    return None


def packed(record: Mapping[str, Any]) -> bytes | None:
    """The same of a record that is parsed; null where it holds what JSON has no word for."""
    if why_unread(record):
        return None
    small = _small(as_record(record))
    try:
        line = orjson.dumps(small, option=_OPTIONS)
    except (TypeError, ValueError, RecursionError):
        return None
    return None if _odd(small) else line


def _small(record: Mapping[str, Any]) -> dict[str, Any]:
    small = {name: record[name] for name in record if name in _RECORD}
    if "day" in record or "at" in record:
        day = day_of(record.get("day")) or day_of(record.get("at"))
        small["day"] = None if day is None else str(day)
    body = record.get("response")
    if body is not None:
        small["response"] = _kept(body, _TREE) if isinstance(body, dict) else body
    return small


def _kept(body: Mapping[str, Any], tree: Tree) -> dict[str, Any]:
    kept = {}
    for name in body.keys() & tree.keys():
        value = body[name]
        kept[name] = _kept(value, inner) if (inner := tree[name]) and isinstance(value, dict) else value
    if body.get("error"):
        kept["error"] = True
    return kept


def _odd(record: Mapping[str, Any]) -> bool:
    """Whether a value is none of JSON's, yet would be written: no number, a tuple, an enumeration."""
    return any(type(value) not in _PLAIN or (type(value) is float and not isfinite(value)) for value in _values(record))


def _values(record: Mapping[str, Any]) -> Iterator[Any]:
    """Everything in a record that is neither an object nor a list."""
    waiting: list[Any] = [record]
    for held in waiting:
        for value in held.values() if type(held) is dict else held:
            if type(value) is dict or type(value) is list:
                waiting.append(value)
            else:
                yield value
