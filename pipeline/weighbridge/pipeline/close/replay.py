"""Work done again on rows that are not to be changed: what would be written is held against what is there."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import date

import polars as pl

from weighbridge.pipeline.lake import shaped
from weighbridge.pipeline.lake.records import Records

# Table, the rows that would be written, the rows that are there on the same days.
Compare = Callable[[str, pl.DataFrame, pl.DataFrame], None]


@dataclass(frozen=True, slots=True)
class Replay:
    """Tables that read from records and write nothing.

    Attributes:
        records: a lake or a close pack.
        compare: is told what would be written, some days at a time; null where nobody asks.
    """

    records: Records
    compare: Compare | None = None

    def scan(
        self, table: str, *, first: date | None = None, last: date | None = None, columns: Sequence[str] | None = None
    ) -> pl.LazyFrame:
        """The rows of the records."""
        return self.records.scan(table, first=first, last=last, columns=columns)

    def days(self, table: str) -> list[date]:
        """The days of the records."""
        return self.records.days(table)

    def replace(self, table: str, frame: pl.DataFrame, *, days: Collection[date] | None) -> None:
        """Compare the rows of these days with those that are there."""
        if self.compare is None or not days:
            return
        held = self.records.scan(table, first=min(days), last=max(days)).filter(pl.col("day").is_in(list(days)))
        self.compare(table, shaped(table, frame), held.collect(engine="streaming"))
