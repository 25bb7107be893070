"""Tables in memory that can be read like a lake, and rows for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any

import polars as pl

from weighbridge.pipeline.lake import polars_schema

DAY = date(2026, 3, 2)  # a Monday
TENANT = "t_00000000000000aa"
Row = dict[str, Any]

ATTEMPT: Row = {
    "day": DAY,
    "source": "agent",
    "model_served": "m-1",
    "tenant": TENANT,
    "task": "chat",
    "route": "main",
    "status": "succeeded",
    "attempt_number": 1,
    "revision": 0,
}
READING: Row = {
    "day": DAY,
    "source": "api",
    "child": 0,
    "report": 0,
    "model": "m-1",
    "verdict": "PROVED",
    "ended": "complete",
    "revision": 0,
    "input_uncached": 100,
    "cache_read": 0,
    "output_visible": 10,
    "input_total": 100,
    "output_total": 10,
}


@dataclass
class Memory:
    """Rows by table."""

    tables: dict[str, list[Row]] = field(default_factory=dict)

    def add(self, table: str, *rows: Row) -> None:
        """Put rows in."""
        self.tables.setdefault(table, []).extend(rows)

    def attempt(self, number: int, **columns: Any) -> None:
        """An attempt of nine o'clock on its day."""
        day = columns.get("day", DAY)
        at = datetime(day.year, day.month, day.day, 9, tzinfo=UTC)
        self.add("attempt", {**ATTEMPT, **key(number), "arrived_at": at, **columns})

    def reading(self, number: int, **columns: Any) -> None:
        """A proved reading."""
        self.add("reading", {**READING, **key(number), **columns})

    def call(self, number: int, tokens: int = 100, **columns: Any) -> None:
        """An attempt and its reading."""
        self.attempt(number, **columns)
        told = {"day": columns["day"]} if "day" in columns else {}
        self.reading(number, input_uncached=tokens, input_total=tokens, **told)

    def frame(self, table: str) -> pl.DataFrame:
        """The rows of a table."""
        return pl.DataFrame(self.tables.get(table, []), schema=polars_schema(table))

    def scan(
        self, table: str, *, first: date | None = None, last: date | None = None, columns: Sequence[str] | None = None
    ) -> pl.LazyFrame:
        """As `Lake.scan`."""
        rows = self.frame(table).lazy()
        if first is not None:
            rows = rows.filter(pl.col("day") >= first)
        if last is not None:
            rows = rows.filter(pl.col("day") <= last)
        return rows if columns is None else rows.select(columns)

    def days(self, table: str) -> list[date]:
        """As `Lake.days`."""
        return sorted(set(self.frame(table)["day"]))


def key(number: int) -> Row:
    """The key of a made-up attempt."""
    return {"attempt_hi": number << 32, "attempt_lo": number}


def later(days: int) -> date:
    """A day after `DAY`."""
    return DAY + timedelta(days=days)
