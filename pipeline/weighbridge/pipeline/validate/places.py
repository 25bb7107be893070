"""The records of a file by their place: which there are, what they say, as it was stored and as it is read now.

A place is a line, or of a sealed segment a table and a row of it, for a segment has a file per table.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import date
from typing import Final

import polars as pl

from weighbridge.pipeline.ingest.batch import OF_A_LINE
from weighbridge.pipeline.ingest.importer import Staged
from weighbridge.pipeline.ingest.importers.segment import TOLD
from weighbridge.pipeline.ingest.token_runs import TABLE as TOKEN_RUN
from weighbridge.pipeline.ingest.token_runs import with_ciphertext
from weighbridge.pipeline.lake import Lake
from weighbridge.pipeline.validate.quarantine import Entry
from weighbridge.schemas.tables import TABLES

# Tables of sealed segments whose rows are told apart by the line they came from.
PLACED: Final = tuple(name for name in TOLD if {"segment", "segment_row"} <= set(TABLES[name].names))
# Sealed blocks of token ids are whole or not at all; a part of one is not stored later. Ids of a log are sealed anew.
_NEVER: Final = (TOKEN_RUN, "state_event")
_ATTEMPT: Final = ["attempt_hi", "attempt_lo"]
_SETTLED: Final = frozenset({"attempt_hi", "attempt_lo", "revision", "report", "segment", "segment_row"})

Place = tuple[str | None, int]
Said = list[tuple[object, ...]]


def place_of(entry: Entry, sealed: bool) -> Place:
    """The record of an entry; a reading is that of a row of `usage_report`."""
    if not sealed:
        return None, entry.line
    return "usage_report" if entry.table == "reading" else entry.table, entry.line


def is_clash(entry: Entry) -> bool:
    """Whether it could be read, and was not stored because other content has its key."""
    return not entry.stored and any(path in TABLES for path in entry.paths)


def _retried_tables(staged: Staged) -> list[str]:
    """The tables whose rows can be told by their place, and may be stored later than the rest of their file."""
    never = () if staged.by_line else _NEVER
    return [name for name, rows in staged.tables.items() if name not in never and "segment_row" in rows.columns]


def readable(staged: Staged, places: Collection[Place]) -> set[Place]:
    """Those of the places that have rows and are not refused, as the file is read now."""
    found: set[Place] = set()
    for name in _retried_tables(staged):
        if not staged.by_line or name in OF_A_LINE:
            table = None if staged.by_line else name
            found |= {(table, line) for line in staged.tables[name]["segment_row"].unique()}
    return found & set(places)


def lines_of(places: Collection[Place], table: str) -> list[int]:
    """The lines of those places that may have rows in a table."""
    return sorted(line for of, line in places if of is None or of == table)


def stored_rows(
    lake: Lake, digest: str, places: Collection[Place], sealed: bool
) -> tuple[dict[Place, Said], dict[Place, set[date]]]:
    """Place -> what its stored rows say, and the days they lie on; places without any are left out."""
    found: dict[Place, Said] = {}
    days: dict[Place, set[date]] = {}
    for name in PLACED if sealed else OF_A_LINE:
        lines = lines_of(places, name)
        if lines:
            rows = lake.scan(name).filter(pl.col("segment") == digest, pl.col("segment_row").is_in(lines)).collect()
            of = name if sealed else None
            _say(found, name, rows, of)
            for line, day in rows.select("segment_row", "day").iter_rows() if TABLES[name].daily else ():
                days.setdefault((of, line), set()).add(day)
    told = {place: sorted(said, key=repr) for place, said in found.items()}
    return told, {place: days.get(place, set()) for place in told}


def staged_rows(staged: Staged, places: Collection[Place]) -> dict[Place, Said]:
    """Place -> what its rows say, as the file is read now."""
    found: dict[Place, Said] = {}
    for name in _retried_tables(staged):
        if not staged.by_line or name in OF_A_LINE:
            rows = staged.tables[name]
            held = rows.filter(pl.col("segment_row").is_in(lines_of(places, name)))
            _say(found, name, held, None if staged.by_line else name)
    return {place: sorted(said, key=repr) for place, said in found.items()}


def _say(found: dict[Place, Said], table: str, rows: pl.DataFrame, of: str | None) -> None:
    """Add what rows say: every value but the key, which may have been adopted, and what is settled by ingest."""
    for row in rows.iter_rows(named=True):
        undated = bool(row.get("undated"))
        said = tuple(
            (name, value)
            for name, value in sorted(row.items())
            if value is not None and name not in _SETTLED and not (name == "day" and undated)
        )
        found.setdefault((of, row["segment_row"]), []).append((table, said))


def only(staged: Staged, places: Collection[Place]) -> Staged:
    """What was staged of these places only."""
    tables: dict[str, pl.DataFrame] = {}
    for name in _retried_tables(staged):
        rows = staged.tables[name].filter(pl.col("segment_row").is_in(lines_of(places, name)))
        if rows.height:
            tables[name] = with_ciphertext(rows, staged.tables[name]) if name == TOKEN_RUN else rows
    keys = [rows.select(_ATTEMPT) for rows in tables.values() if set(_ATTEMPT) <= set(rows.columns)]
    derived = staged.derived
    if derived is not None:
        derived = derived.join(pl.concat(keys).unique(), on=_ATTEMPT, how="semi") if keys else derived.clear()
    records = len(places) if staged.by_line else sum(rows.height for rows in tables.values())
    return replace(staged, records=records, tables=tables, refused=None, refused_records=0, derived=derived)
