"""Records of JSON exports: one object a line, or one document that holds a list of them.

    {"id": "a", ...}                          JSON Lines
    [{"id": "a", ...}, {"id": "b", ...}]      a list
    {"data": [{"id": "a", ...}], "meta": ..}  a page of an API, or several of them one a line

A record's number is its line, or its place in the list. Files may be gzip-compressed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path

from weighbridge.pipeline.ingest.json_lines import BOM, Line, opened, parse, parse_list, read_lines
from weighbridge.schemas.enumerations import QuarantineReason
from weighbridge.schemas.errors import ContractError

# A document is held in memory as a whole; exports of more come as JSON Lines.
MAX_DOCUMENT = 512 * 2**20
_DOCUMENT = ".json"


def is_json(path: Path) -> bool:
    """Whether a file is JSON or JSON Lines, by its name."""
    name = path.name.lower().removesuffix(".gz")
    return path.is_file() and name.endswith((".json", ".jsonl", ".ndjson"))


def read_records(path: Path, lists: Sequence[str] = ()) -> Iterator[Line]:
    """The records of a file, in order, numbered from 0.

    Args:
        path: the file.
        lists: the keys under which a document or a line holds its list of records; an object without any of them is a
            record itself.

    Raises:
        ContractError: the compressed file is damaged, or a document is larger than can be held.
    """
    if not path.name.lower().removesuffix(".gz").endswith(_DOCUMENT):
        yield from _numbered(read_lines(path), lists)
        return
    about = path.stat()
    document = _document(path, about.st_size, about.st_mtime_ns, about.st_ino)
    if document is None:
        yield from _numbered(read_lines(path), lists)
    elif isinstance(document, Line):
        yield from _numbered(iter([document]), lists)
    else:
        for number, item in enumerate(document):
            yield _record(number, item)


def let_go() -> None:
    """Forget the document that was read last."""
    _document.cache_clear()


@lru_cache(maxsize=1)
def _document(path: Path, *state: int) -> list[object] | Line | None:  # noqa: ARG001 - a changed file is another one
    """The items of a document that is a list, the object that it is, or null where it is lines under such a name.

    Every importer looks at a file before one reads it: the document is taken apart once for all of them, and held
    until `let_go`.
    """
    with opened(path) as file:
        raw = file.read(MAX_DOCUMENT + 1)
    if len(raw) > MAX_DOCUMENT:
        raise ContractError(
            f"{path} is one JSON document of more than {MAX_DOCUMENT // 2**20} MiB, which is not held in memory. "
            "Export it as JSON Lines, one record a line; nothing was written."
        )
    raw = raw.removeprefix(BOM)
    if not raw.strip():
        return []
    items = parse_list(raw)
    if items is not None:
        return items
    value, reason = parse(raw)
    # Some exports are lines under the name of a document.
    lines = reason is QuarantineReason.NOT_JSON and raw.strip().count(b"\n")
    return None if lines else Line(0, value, reason)


def _numbered(lines: Iterator[Line], lists: Sequence[str]) -> Iterator[Line]:
    """The records of lines; where a line holds a list of them, all records of the file are numbered on."""
    number = 0
    unfolded = False
    for line in lines:
        held = _held(line.value, lists)
        if held is None:
            yield Line(number, line.value, line.reason) if unfolded else line
            number += 1
            continue
        unfolded = True
        for item in held:
            yield _record(number, item)
            number += 1


def _held(value: dict[str, object] | None, lists: Sequence[str]) -> list[object] | None:
    for name in lists if value is not None else ():
        held = value.get(name) if value is not None else None
        if isinstance(held, list):
            return held
    return None


def _record(number: int, item: object) -> Line:
    if isinstance(item, dict):
        return Line(number, item)
    return Line(number, None, QuarantineReason.NOT_AN_OBJECT)
