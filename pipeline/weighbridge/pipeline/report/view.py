"""A view of the lake: the rows of one period, each dated in the zone of the report, read as lazily as can be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date
from typing import Any, Protocol, TypeVar

import polars as pl

from weighbridge.pipeline.reconcile.life.material import Materiality
from weighbridge.pipeline.report.earlier import Closes
from weighbridge.pipeline.report.period import Period

T = TypeVar("T")
ATTEMPT = ("attempt_lo", "attempt_hi")


class Records(Protocol):
    """What the report needs of a lake."""

    def scan(
        self, table: str, *, first: date | None = None, last: date | None = None, columns: Sequence[str] | None = None
    ) -> pl.LazyFrame:
        """The rows of a table, or of some UTC days of it."""
        ...

    def days(self, table: str) -> list[date]:
        """The UTC days a table has rows of."""
        ...


class View:
    """What sections query. Everything derived from it is made once and kept for the other sections.

    Args:
        lake: where the tables are.
        period: which days, in which zone.
        simulated: whether the data was made by the product itself.
        closes: the months it is compared with, and its own close where it has one.
        material: which findings matter; null: all.
    """

    def __init__(
        self,
        lake: Records,
        period: Period,
        *,
        simulated: bool = False,
        closes: Closes | None = None,
        material: Materiality | None = None,
    ) -> None:
        """Name a view; nothing is read yet."""
        self.lake = lake
        self.period = period
        self.simulated = simulated
        self.closes: Closes = closes or {}
        self.material = material or Materiality()
        self._kept: dict[Callable[[View], Any], Any] = {}

    def get(self, make: Callable[[View], T]) -> T:
        """The result of `make` for this view, made at most once."""
        if make not in self._kept:
            self._kept[make] = make(self)
        kept: T = self._kept[make]
        return kept

    def read(self, table: str, columns: Sequence[str]) -> pl.LazyFrame:
        """The rows of the UTC days that have to be read, some of which may lie outside the period."""
        first, last = self.period.read
        return self.lake.scan(table, first=first, last=last, columns=columns)

    def dated(self, table: str, columns: Sequence[str]) -> pl.LazyFrame:
        """The rows of the period, with `on`: the day of their attempt in the zone of the report.

        A row whose attempt has no time, or is not known, keeps its UTC day. Nearly all attempts keep theirs in any
        zone, so only the others are looked up.
        """
        frame = self.read(table, columns)
        if self.period.utc:
            return frame.with_columns(on="day")
        return (
            frame.join(self.get(moments).lazy(), on=ATTEMPT, how="left", maintain_order="none")
            .with_columns(on=pl.coalesce("on", "day"))
            .filter(pl.col("on").is_between(self.period.first, self.period.last))
        )

    def whole(self, table: str, columns: Sequence[str] | None = None) -> pl.LazyFrame:
        """The rows of a table that is not kept by day."""
        return self.lake.scan(table, columns=columns)


def moments(view: View) -> pl.DataFrame:
    """Attempts whose day in the zone of the report is not their UTC day, and that day; the earliest arrival counts."""
    frame = view.read("attempt", [*ATTEMPT, "day", "arrived_at"]).drop_nulls("arrived_at")
    day = pl.col("day")
    grouped = frame.group_by(ATTEMPT).agg(
        pl.col("arrived_at").min().dt.convert_time_zone(view.period.zone).dt.date().alias("on"),
        day.min().alias("first"),
        day.max().alias("last"),
    )
    moved = (pl.col("on") != pl.col("first")) | (pl.col("first") != pl.col("last"))
    return collect(grouped.filter(moved).select(*ATTEMPT, "on"))


def collect(frame: pl.LazyFrame) -> pl.DataFrame:
    """The rows of a plan, computed in bounded memory."""
    return frame.collect(engine="streaming")
