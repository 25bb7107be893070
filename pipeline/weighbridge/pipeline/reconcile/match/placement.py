"""Which day a row belongs to, where its own day is not that of its attempt.

Work goes day by day, so an attempt and its usage reports have to meet on one day. Almost all do. The others (a report
written after midnight, an export dated later, an undated record) are found by their keys over the whole lake and
moved to the home of their attempt: the earliest day any source has it under; for reports that no attempt answers to,
the earliest day of any of them.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import date

import polars as pl

from weighbridge.pipeline.reconcile.frames import KEY

_IDENTITY = [*KEY, "day"]


@dataclass(frozen=True, slots=True)
class Placement:
    """Where the rows of a month belong.

    Attributes:
        moved: attempt_lo, attempt_hi, home, first_day, last_day of the attempts whose rows lie on several days.
        unseen: attempt_lo, attempt_hi, day of those that only reports know of, each on its home.
    """

    moved: pl.DataFrame
    unseen: pl.DataFrame

    def rows(self, table: pl.LazyFrame, days: Collection[date]) -> pl.LazyFrame:
        """The rows of a table (all days of it) that are at home on `days`."""
        if not days:
            return table.clear().lazy()
        inside = pl.col("day").is_in(list(days))
        at_home = pl.col("home").is_in(list(days))
        here = table.filter(pl.col("day").is_between(min(days), max(days)) & inside)
        if self.moved.is_empty():
            return here
        away = self.moved.filter(~at_home)
        if away.height:
            here = here.join(away.lazy().select(KEY), on=list(KEY), how="anti")
        guests = self.moved.filter(at_home)
        if guests.is_empty():
            return here
        first, last = guests["first_day"].min(), guests["last_day"].max()
        elsewhere = table.filter(pl.col("day").is_between(first, last) & ~inside)
        return pl.concat([here, elsewhere.join(guests.lazy().select(KEY), on=list(KEY), how="semi")])


def placed(attempts: pl.LazyFrame, readings: pl.LazyFrame, month: Collection[date], *, others: bool) -> Placement:
    """Where the rows of a month belong.

    Args:
        attempts, readings: attempt_lo, attempt_hi, day of the whole lake.
        month: the days of the month that have rows.
        others: whether the lake has rows of other days at all.
    """
    inside = pl.col("day").is_in(list(month))
    tables = [
        frame.select(_IDENTITY).with_columns(known=known) for frame, known in ((attempts, True), (readings, False))
    ]
    here = pl.concat([frame.filter(inside) for frame in tables])
    if others:
        own = here.select(KEY).unique()
        here = pl.concat([here, *(frame.filter(~inside).join(own, on=list(KEY), how="semi") for frame in tables)])
    day = pl.col("day")
    keys = here.group_by(KEY).agg(first_day=day.min(), last_day=day.max(), attempt_day=pl.when("known").then(day).min())
    notable = keys.filter((pl.col("first_day") != pl.col("last_day")) | pl.col("attempt_day").is_null()).collect(
        engine="streaming"
    )
    homes = notable.with_columns(home=pl.coalesce("attempt_day", "first_day"))
    return Placement(
        moved=homes.filter(pl.col("first_day") != pl.col("last_day")).drop("attempt_day"),
        unseen=homes.filter(pl.col("attempt_day").is_null() & pl.col("home").is_in(list(month))).select(
            *KEY, day="home"
        ),
    )
