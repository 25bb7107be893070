"""The tables `[[sources]]`: what a night fetches itself. Where a secret is needed, a line names a variable."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from weighbridge.pipeline.settings.kinds import (
    FIRST_DAY,
    GIVEN_NAME,
    IMPORTER,
    LINE,
    ON_FAILURES,
    PATH,
    SECRET_VARIABLE,
    SOURCE_KIND,
    SOURCE_NAME,
)
from weighbridge.pipeline.settings.shape import InsideError, Kind, Line, Shape, type_name

SOURCE = Shape(
    lines=(
        Line("name", SOURCE_NAME, None, "what findings call it, a word of its own"),
        Line("kind", SOURCE_KIND, None, "files (a file or folder), or litellm (its database in PostgreSQL)"),
        Line("variable", SECRET_VARIABLE, None, "environment variable that says where it is, or how it is reached"),
        Line("path", PATH, None, "of files: the file or folder, instead of a variable"),
        Line("importer", IMPORTER, None, "of files: which importer reads them; recognised by content if left out"),
        Line("mapping", PATH, None, "of files: what the columns mean (TOML)"),
        Line("since", FIRST_DAY, None, "of litellm: the UTC day the first fetch begins with"),
        Line("provider", GIVEN_NAME, None, "provider of records that name none"),
        Line("model", GIVEN_NAME, None, "model of records that name none"),
        Line("tenant", LINE, None, "tenant (account) of records that name none; kept as a pseudonym"),
        Line("task", GIVEN_NAME, None, "task type of records that name none"),
        Line(
            "on_failure", ON_FAILURES, "note", "where it cannot be fetched: note (a finding) or stop (the night ends)"
        ),
    )
)
_OF_FILES, _OF_LITELLM = ("path", "importer", "mapping"), ("since",)


def _sources(raw: list[object] | str, folder: Path) -> tuple[Mapping[str, object], ...]:
    items = _listed(raw)
    sources: list[Mapping[str, object]] = []
    for number, item in enumerate(items, 1):
        if not isinstance(item, Mapping):
            raise InsideError(str(number), f"is {type_name(item)}; a table is expected, as in [[sources]]")
        try:
            source = SOURCE.parse(item, folder)
            _check(source)
        except InsideError as error:
            raise InsideError(f"{number}.{error.at}" if error.at else str(number), str(error)) from None
        if any(source["name"] == other["name"] for other in sources):
            raise InsideError(f"{number}.name", f"is {source['name']!r}, which another source has; name each otherwise")
        sources.append(source)
    return tuple(sources)


def _listed(raw: list[object] | str) -> list[object]:
    try:
        items = json.loads(raw) if isinstance(raw, str) else raw
    except json.JSONDecodeError as error:
        raise InsideError(
            "", f"is not JSON ({error.msg}); sources are written as a JSON list of objects here"
        ) from None
    if not isinstance(items, list):
        raise InsideError("", f"is {type_name(items)}; a list of tables is expected")
    return items


def _check(source: Mapping[str, object]) -> None:
    for name in ("name", "kind"):
        if name not in source:
            raise InsideError(name, "is missing; every source has a name and a kind")
    places = [name for name in ("variable", "path") if name in source]
    kind = source["kind"]
    if kind == "litellm" and "variable" not in source:
        raise InsideError("variable", "is missing; name the environment variable that holds the connection string")
    for name in _OF_FILES if kind == "litellm" else _OF_LITELLM:
        if name in source:
            raise InsideError(name, f"has no meaning for the kind {kind}; leave it out")
    if len(places) != 1:
        raise InsideError("path", "or variable says where the files are: exactly one of them is expected")


SOURCES = Kind("a list of tables", (list,), _sources)
