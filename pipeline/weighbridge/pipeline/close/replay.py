"""Work on rows that are not to be changed: what would have been written is held against what is there."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import date

import polars as pl

from weighbridge.pipeline.lake import empty, shaped
from weighbridge.pipeline.lake.records import Records


@dataclass(frozen=True, slots=True)
class Replay:
    """Tables that read from records and keep what is written to them.

    Attributes:
        records: a lake or a close pack.
        written: table -> what was written, in the order it came; the last word on a day is its only one.
    """

    records: Records
    written: dict[str, list[pl.DataFrame]] = field(default_factory=dict)

    def scan(
        self, table: str, *, first: date | None = None, last: date | None = None, columns: Sequence[str] | None = None
    ) -> pl.LazyFrame:
        """The rows of the records."""
        return self.records.scan(table, first=first, last=last, columns=columns)

    def days(self, table: str) -> list[date]:
        """The days of the records."""
        return self.records.days(table)

    def replace(self, table: str, frame: pl.DataFrame, *, days: Collection[date] | None) -> None:
        """Keep the rows; `days` come one after the other and never twice."""
        assert days is None or set(frame["day"].unique()) <= set(days)
        self.written.setdefault(table, []).append(frame)

    def made(self, table: str) -> pl.DataFrame:
        """All rows of a table that would have been written, in its columns and types."""
        return pl.concat([empty(table), *(shaped(table, frame) for frame in self.written.get(table, ()))])
