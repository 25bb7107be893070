"""Conservation of rows: what a file brought in is in the lake, no more and no less.

    rows_in = rows_out + rows_quarantined + rows_duplicate        stands in the account itself (see `identities`)
    rows_out = rows of the file in the lake + rows_unplaced        is counted here

A record of a sealed segment is a row; a record of any other file is a line, which may have rows in several tables.
Where rows were lawfully erased, receipts say how many and of which days: files of these days may lack as many rows as
these say, and no more (`excuses`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date

import polars as pl

from weighbridge.pipeline.ingest.batch import OF_A_LINE, UNPLACED
from weighbridge.pipeline.ingest.importers.segment import IMPORTER as SEALED
from weighbridge.pipeline.ingest.importers.segment import TOLD
from weighbridge.pipeline.lake import Lake
from weighbridge.pipeline.lake.failure import told
from weighbridge.pipeline.lake.words import texts
from weighbridge.pipeline.validate.counts import Counted, tally
from weighbridge.pipeline.validate.excuses import excused, gone, span
from weighbridge.schemas.tables import HEX64, TABLES

# Whose rows are counted as records of their file.
COUNTED = tuple(name for name in TOLD if name not in UNPLACED and "segment" in TABLES[name].names)
# Lines whose places are compared at a time.
_AT_ONCE = 4_000_000


@dataclass(slots=True)
class Held:
    """Files whose rows were counted.

    Attributes:
        looked: how many files.
        missing: digest -> rows that are not there.
        excused: digest -> how many of them receipts account for.
        surplus: digest -> rows too many.
        unknown: files whose account does not say how many rows are unplaced; they were not looked at.
    """

    looked: int = 0
    missing: dict[str, int] = field(default_factory=dict)
    excused: dict[str, int] = field(default_factory=dict)
    surplus: dict[str, int] = field(default_factory=dict)
    unknown: int = 0

    @property
    def lost(self) -> dict[str, int]:
        """Digest -> rows that are not there and of which no receipt speaks."""
        left = {digest: rows - self.excused.get(digest, 0) for digest, rows in self.missing.items()}
        return {digest: rows for digest, rows in left.items() if rows}


def hold(
    lake: Lake,
    counted: Mapping[str, Mapping[date | None, Counted]],
    digests: Collection[str] | None,
    days: Collection[date] = (),
) -> Held:
    """Hold accounts against the lake.

    Args:
        lake: the lake; its lock is held.
        counted: table -> day -> what was counted there already.
        digests: only the accounts of these files; null: all.
        days: and of those that had rows put on any of these UTC days, whether or not one is there.
    """
    found = _held(lake, counted, _accounts(lake, digests, days))
    erased = gone(lake, COUNTED) if found.missing else Counter()
    if erased:
        # Files that were not asked about may lack rows of the same receipts.
        everywhere = found if digests is None else _held(lake, counted, _accounts(lake, None, ()))
        spans = _accounts(lake, everywhere.missing, ()).select("segment", "first_day", "last_day")
        of_days = {digest: span(first, last) for digest, first, last in spans.iter_rows()}
        let = excused(everywhere.missing, of_days, erased)
        found.excused = {digest: let[digest] for digest in found.missing if digest in let}
    return found


def _accounts(lake: Lake, digests: Collection[str] | None, days: Collection[date]) -> pl.DataFrame:
    names = ["segment", "importer", "rows_out", "rows_unplaced", "first_day", "last_day"]
    # A digest that is none breaks the pattern of its column, and may be text: it is neither looked up nor named.
    is_digest = pl.col("segment").str.contains(f"^(?:{HEX64})$")
    accounts = lake.scan("segment", columns=names).filter(is_digest).collect()
    if digests is None:
        return accounts
    of_days = (pl.lit(day).is_between("first_day", "last_day") for day in days)
    return accounts.filter(pl.any_horizontal(pl.col("segment").is_in(list(digests)), *of_days))


def _held(lake: Lake, counted: Mapping[str, Mapping[date | None, Counted]], accounts: pl.DataFrame) -> Held:
    sealed = accounts.filter(pl.col("importer") == SEALED.name)
    known = sealed.filter(pl.col("rows_unplaced").is_not_null())
    lines = accounts.filter(pl.col("importer") != SEALED.name)
    found = Held(looked=known.height + lines.height, unknown=sealed.height - known.height)
    rows = _rows(lake, counted, set(known["segment"])) if known.height else Counter()
    with told("validating segment", lake.root):
        rows.update(_lines(lake, lines))
    figures = pl.concat([known, lines]).sort("segment").select("segment", "rows_out", "rows_unplaced")
    for digest, out, unplaced in figures.iter_rows():
        difference = rows[digest] + (unplaced or 0) - out
        if difference:
            (found.surplus if difference > 0 else found.missing)[digest] = abs(difference)
    return found


def _rows(lake: Lake, counted: Mapping[str, Mapping[date | None, Counted]], digests: Collection[str]) -> Counter[str]:
    """File -> its rows in all tables."""
    rows: Counter[str] = Counter()
    for table in COUNTED:
        known = counted.get(table, {})
        for of_day in known.values():
            rows.update(_of(of_day.tallies.get("segment", {}), digests))
        rest = [part for part in lake.parts(table) if part.day not in known]
        for _, columns in texts(lake, table, ["segment"], rest):
            for values in columns.values():
                rows.update(_of(tally(values), digests))
    return rows


def _of(rows: Mapping[str | None, int], digests: Collection[str]) -> dict[str, int]:
    return {digest: number for digest, number in rows.items() if digest is not None and digest in digests}


def _lines(lake: Lake, accounts: pl.DataFrame) -> dict[str, int]:
    """File -> distinct lines that have a row in any table."""
    found: dict[str, int] = {}
    for digests in _groups(accounts):
        numbered = pl.DataFrame({"segment": digests}).with_row_index("file").lazy()
        places = [
            lake.scan(table, columns=["segment", "segment_row"])
            .join(numbered, on="segment")
            .select("file", "segment_row")
            for table in OF_A_LINE
        ]
        lines = pl.concat(places).unique().group_by("file").len().collect(engine="streaming")
        found.update({digests[file]: number for file, number in lines.iter_rows()})
    return found


def _groups(accounts: pl.DataFrame) -> Iterator[Sequence[str]]:
    """Files in groups of about as many lines as are compared at a time."""
    group: list[str] = []
    lines = 0
    for digest, rows in accounts.sort("segment").select("segment", "rows_out").iter_rows():
        if group and lines + rows > _AT_ONCE:
            yield group
            group, lines = [], 0
        group.append(digest)
        lines += rows
    if group:
        yield group
