"""Days and months of a billing zone, and the UTC moments they begin and end at (`begin_of` says when a day does)."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import polars as pl

from weighbridge.pipeline.ingest.charges.days import begin_of


def day_of(moment: datetime, zone: str) -> date:
    """The day a moment lies on in a zone."""
    return moment.astimezone(ZoneInfo(zone)).date()


def last_day_of(start: datetime, end: datetime, zone: str) -> date:
    """The last day of a period, whose end is no part of it."""
    return day_of(max(start, end - timedelta(microseconds=1)), zone)


def month_of(moment: datetime, zone: str) -> str:
    """The month a moment lies in, `YYYY-MM`."""
    return f"{day_of(moment, zone):%Y-%m}"


def span_of(month: str, zone: str) -> tuple[datetime, datetime]:
    """The UTC moments a month begins at, and the next one does."""
    year, number = int(month[:4]), int(month[5:])
    following = date(year + number // 12, number % 12 + 1, 1)
    return begin_of(date(year, number, 1), zone), begin_of(following, zone)


def local_day(at: pl.Expr, zone: str) -> pl.Expr:
    """The days moments lie on in a zone."""
    return at.dt.convert_time_zone(zone).dt.date()


def by_day(moments: Iterable[datetime], amounts: Iterable[Decimal | None], zone: str) -> dict[date, Decimal | None]:
    """Sums of amounts by the day of a zone; a day with an amount that is not known has no sum."""
    found: dict[date, Decimal | None] = {}
    for moment, paid in zip(moments, amounts, strict=True):
        day = day_of(moment, zone)
        before = found.get(day, Decimal(0))
        found[day] = None if before is None or paid is None else before + paid
    return found
