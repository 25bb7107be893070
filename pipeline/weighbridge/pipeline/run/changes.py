"""The log of changes: whoever runs notices what is configured otherwise than it was, and writes it down.

What the log says last of each value is what was known, so nothing beside it has to be kept. What is seen for the first
time has no value before. A mapping file that a run does not name is left as it was.
"""

from __future__ import annotations

import getpass
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl

from weighbridge.pipeline.lake.records import Records
from weighbridge.pipeline.lake.shape import polars_schema
from weighbridge.pipeline.run.configuration import Document, configuration
from weighbridge.pipeline.run.home import Home
from weighbridge.schemas.enumerations import ConfigKind
from weighbridge.schemas.identity import AttemptKey, erased

TABLE = "change"
_Place = tuple[str, str, str]


def notice(home: Home, now: datetime, *, by: str | None = None, mappings: Iterable[Path] = ()) -> int:
    """Write down what is configured otherwise than the log says; how many values that is.

    Args:
        home: the installation.
        now: the time.
        by: who changed it, where that is known; null: the user of this system, whose run it is.
        mappings: mapping files that are used beside those of the settings.

    Raises:
        LakeBusyError: another process is writing.
    """
    lake = home.lake()
    found = configuration(home, mappings)
    if not any(True for _ in _changed(known(lake), found)):
        return 0
    with lake.lock():
        first = lake.rows(TABLE)
        about = {"at": now.astimezone(UTC), "by": by or user()}
        rows = [{"number": first + number, **about, **row} for number, row in enumerate(_changed(known(lake), found))]
        lake.append(TABLE, pl.DataFrame(rows, schema=polars_schema(TABLE)))
    return len(rows)


def known(lake: Records) -> dict[_Place, str]:
    """(kind, file, key) -> the value it has, as the log says. What became of recommendations, and
    who looked at content, is no configuration."""
    rows = lake.scan(TABLE, columns=["number", "kind", "file", "key", "after"]).sort("number").collect()
    rows = rows.filter(~pl.col("kind").is_in([str(ConfigKind.STRATEGY), str(ConfigKind.ACCESS)]))
    held: dict[_Place, str | None] = {}
    for _, kind, file, key, after in rows.iter_rows():
        held[kind, file, key] = after
    return {place: value for place, value in held.items() if value is not None}


def _changed(before: dict[_Place, str], found: list[Document]) -> Iterator[dict[str, Any]]:
    now = {(str(each.kind), each.file, key): value for each in found for key, value in each.values.items()}
    digests = {(str(each.kind), each.file): each.digest for each in found}
    for place in sorted({*before, *now}):
        kind, file, key = place
        unnamed = kind == ConfigKind.MAPPING and (kind, file) not in digests
        if before.get(place) != now.get(place) and not unnamed:
            yield {
                "kind": kind,
                "file": file,
                "key": key,
                "before": before.get(place),
                "after": now.get(place),
                "file_digest": digests.get((kind, file)),
            }


def note_access(home: Home, now: datetime, what: str, about: AttemptKey | str) -> str:
    """Write down that content is opened, before it is.

    Args:
        what: the verb that opens it.
        about: the attempt, which is named by the hash that receipts name it by, so that the log outlives its erasure;
            or a name of what else is opened.

    Returns:
        What the log calls it.

    Raises:
        LakeBusyError: another process is writing; nothing is opened then.
    """
    lake = home.lake()
    key = about if isinstance(about, str) else erased(about.to_hex())
    with lake.lock():
        row = {
            "number": lake.rows(TABLE),
            "at": now.astimezone(UTC),
            "by": user(),
            "kind": str(ConfigKind.ACCESS),
            "file": what,
            "key": key,
        }
        lake.append(TABLE, pl.DataFrame([row], schema=polars_schema(TABLE)))
    return key


def user() -> str:
    """The user of this system, in the letters a name may have."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):
        name = ""
    return re.sub(r"[^A-Za-z0-9._:/@-]", "-", name).lstrip("._:/@-")[:128] or "unknown"
