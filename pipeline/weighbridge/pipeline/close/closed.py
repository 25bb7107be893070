"""Closed months as they were closed: their figures, and a lake in which they never change.

What comes late for a closed month lies in the lake like any other row. Whoever reports reads through `closed_records`,
where the rows of closed months come from their packs and those of open months from the lake; the difference is booked
by `adjust` and stands in the open month.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl

from weighbridge.pipeline.close.figures import Figures, figures_of
from weighbridge.pipeline.close.layout import BLANKED, CLOSED
from weighbridge.pipeline.close.month_figures import named
from weighbridge.pipeline.close.pack import Pack, is_pack
from weighbridge.pipeline.close.plain import DamagedError
from weighbridge.pipeline.lake.records import Records
from weighbridge.pipeline.reconcile.period import ends
from weighbridge.schemas.tables import TABLES

# Of these every row may be wanted, whatever month it is about: names of files, and prices.
_SHARED = ("price", "price_fee", "price_tier", "segment")


@dataclass(frozen=True, slots=True)
class ClosedMonth:
    """The close of a month, for whoever compares with it.

    Attributes:
        period: the month.
        root, figures_digest: as they stand in the lake.
        figures: section -> entries (`figures.Entry`: what it is about, exact values); tenants under their pseudonyms,
            erased ones as `#<number>`.
    """

    period: str
    root: str
    figures_digest: str
    figures: Figures


def closes(lake: Records) -> dict[str, dict[str, Any]]:
    """Month -> its row in the table `close`, in order."""
    rows = lake.scan("close").sort("period").collect().to_dicts()
    return {str(row["period"]): row for row in rows}


def closed_figures(lake: Records, packs: Path, period: str) -> ClosedMonth | None:
    """The figures of a closed month; null where it is not closed, or its pack was kept no longer.

    Raises:
        DamagedError: the pack is not the one that was closed, or cannot be read; verify it, and restore it.
    """
    row = closes(lake).get(period)
    pack = Pack(packs / period)
    if row is None or not is_pack(pack.folder):
        return None
    if pack.manifest.root() != row["root"]:
        raise DamagedError(
            f"{pack.folder} is not the close of {period} that the lake knows; run `weighbridge verify {period}`"
        )
    try:
        found = figures_of(pack.figures)
    except (KeyError, TypeError, ValueError):
        raise DamagedError(f"the figures in {pack.folder} cannot be read; run `weighbridge verify {period}`") from None
    return ClosedMonth(period, row["root"], row["figures_digest"], named(found, pack.tenants()))


def compared_with(period: str) -> tuple[str, str]:
    """The months a month is compared with: the one before, and the same a year before."""
    return beside(period)[0], f"{int(period[:4]) - 1:04d}{period[4:]}"


def beside(month: str) -> tuple[str, str]:
    """The months before and after a month; those beside the first and the last year are names that no month has."""
    number = int(month[:4]) * 12 + int(month[5:]) - 1
    before, after = (f"{each // 12:04d}-{each % 12 + 1:02d}" for each in (number - 1, number + 1))
    return before, after


@dataclass(frozen=True, slots=True)
class ClosedRecords:
    """A lake in which closed months are as they were closed.

    Attributes:
        lake: the lake.
        packs: closed month -> its pack.
        whole: the months that are read are all closed, so tables that are not kept by day come from their packs alone.
        months: the months that are read.
    """

    lake: Records
    packs: Mapping[str, Pack]
    months: tuple[str, ...]

    @property
    def whole(self) -> bool:
        """Whether every month that is read is closed."""
        return bool(self.months) and set(self.months) <= set(self.packs)

    @property
    def erased(self) -> dict[str, int]:
        """Month that is read -> rows that were lawfully erased from its pack: its rows no longer give its figures."""
        counts = {month: sum(map(len, pack.erased.values())) for month, pack in self.packs.items()}
        return {month: rows for month, rows in counts.items() if rows and month in self.months}

    def scan(
        self, table: str, *, first: date | None = None, last: date | None = None, columns: Sequence[str] | None = None
    ) -> pl.LazyFrame:
        """The rows of a table; as `Lake.scan`."""
        frame = self.lake.scan(table, first=first, last=last)
        if table in CLOSED and self.packs:
            frame = self._daily(frame, table, first, last) if TABLES[table].daily else self._other(frame, table)
        return frame if columns is None else frame.select(columns)

    def days(self, table: str) -> list[date]:
        """The days a table has rows of, in order."""
        if table not in CLOSED:
            return self.lake.days(table)
        open_days = [day for day in self.lake.days(table) if f"{day:%Y-%m}" not in self.packs]
        held = [pack.own(table).select("day").unique().collect()["day"].to_list() for pack in self.packs.values()]
        return sorted({*open_days, *(day for days in held for day in days)})

    def _daily(self, frame: pl.LazyFrame, table: str, first: date | None, last: date | None) -> pl.LazyFrame:
        parts = []
        for month, pack in self.packs.items():
            begin, end = ends(month)
            frame = frame.filter(~pl.col("day").is_between(begin, end))
            if (first is None or first <= end) and (last is None or last >= begin):
                own = pack.own(table).filter(pl.col("day").is_between(first or begin, last or end))
                parts.append(own)
        return pl.concat([frame, *parts])

    def _other(self, frame: pl.LazyFrame, table: str) -> pl.LazyFrame:
        key = list(TABLES[table].key)
        if self.whole:
            held = pl.concat([self.packs[month].own(table) for month in sorted(self.months, reverse=True)])
            closed = _filled(held.unique(key, keep="first", maintain_order=True), frame, table)
            rest = frame.join(closed, on=key, how="anti", nulls_equal=True)
            return pl.concat([closed, rest]) if table in _SHARED else closed
        if table == "finding":
            months = [month for month in self.months if month in self.packs]
            frozen = [self.packs[month].own(table).filter(pl.col("period") == month) for month in months]
            return pl.concat([frame.filter(~pl.col("period").is_in(months)), *frozen])
        return frame


def _filled(closed: pl.LazyFrame, lake: pl.LazyFrame, table: str) -> pl.LazyFrame:
    """Closed rows with the users' own words, which are in the lake alone."""
    blank = BLANKED.get(table, ())
    if not blank:
        return closed
    key = list(TABLES[table].key)
    words = closed.drop(blank).join(lake.select(*key, *blank), on=key, how="left")
    return words.select(TABLES[table].names)


def closed_records(lake: Records, packs: Path, months: Collection[str]) -> ClosedRecords:
    """The lake with closed months as they were closed.

    Args:
        lake: the lake.
        packs: folder of the close packs.
        months: the months that will be read, `YYYY-MM`; their neighbours may be read too, as time zones need.

    Raises:
        DamagedError: the pack of a closed month is missing or is not the one that was closed: what would be read is
            not what was closed.
    """
    found = {}
    near = {each for month in months for each in (*beside(month), month)}
    for month, row in closes(lake).items():
        if month not in near:
            continue
        pack = Pack(packs / month)
        if not is_pack(pack.folder):
            if month in months:
                raise DamagedError(
                    f"{pack.folder}, the close of {month}, is not there; restore it from a backup, or verify {month}"
                )
            continue
        if pack.manifest.root() != row["root"]:
            raise DamagedError(f"{pack.folder} is not the close of {month} that the lake knows; verify {month}")
        found[month] = pack
    return ClosedRecords(lake, found, tuple(months))
