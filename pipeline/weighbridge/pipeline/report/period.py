"""What a report is about: a range of days in one time zone, and the UTC days that have to be read for it."""

from __future__ import annotations

import re
import zoneinfo
from calendar import monthrange
from dataclasses import dataclass
from datetime import date, timedelta

from weighbridge.schemas.errors import ConfigError

MONTH = re.compile(r"(\d{4})-(0[1-9]|1[0-2])")
_NAMES = "January February March April May June July August September October November December".split()
_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Period:
    """Days `first` to `last`, both inclusive, as they are counted in `zone`.

    Attributes:
        month: `YYYY-MM` where the period is exactly that month, else null.
    """

    first: date
    last: date
    zone: str
    month: str | None = None

    @property
    def utc(self) -> bool:
        """Whether days of the report are days of the lake."""
        return self.zone == "UTC"

    @property
    def read(self) -> tuple[date, date]:
        """The UTC days whose rows may lie in the period: one more on either side unless the zone is UTC."""
        return (self.first, self.last) if self.utc else (self.first - _DAY, self.last + _DAY)

    @property
    def days(self) -> list[date]:
        """Every day of the period."""
        return [self.first + _DAY * offset for offset in range((self.last - self.first).days + 1)]

    @property
    def months(self) -> list[str]:
        """The months the period touches, `YYYY-MM`: findings carry the month they are about."""
        return sorted({f"{day:%Y-%m}" for day in self.days})

    @property
    def name(self) -> str:
        """A short name for files."""
        return self.month or f"{self.first}_{self.last}"

    @property
    def label(self) -> str:
        """`March 2026`, or `5 March 2026 to 7 April 2026`."""
        if self.month:
            return f"{_NAMES[self.first.month - 1]} {self.first.year}"
        return said(self.first) if self.first == self.last else f"{said(self.first)} to {said(self.last)}"


def said(day: date) -> str:
    """A day in words: `5 March 2026`."""
    return f"{day.day} {_NAMES[day.month - 1]} {day.year}"


def month_of(text: str) -> tuple[date, date]:
    """The first and last day of a month written `YYYY-MM`.

    Raises:
        ConfigError: it is not written so.
    """
    match = MONTH.fullmatch(text)
    if not match:
        raise ConfigError(f"month {text!r} is not understood; write it as YYYY-MM, such as 2026-03")
    year, month = int(match[1]), int(match[2])
    if not year:
        raise ConfigError(f"month {text!r} is before the first year; write a year from 0001 to 9999")
    return date(year, month, 1), date(year, month, monthrange(year, month)[1])


def period_of(*, month: str | None, first: date | None, last: date | None, zone: str, held: list[date]) -> Period:
    """The period that was asked for.

    Args:
        month: `YYYY-MM`; then `first` and `last` must be null.
        first, last: both inclusive; where one is null the lake's own first or last day stands in.
        zone: a time zone of the IANA database.
        held: the days the lake has rows of, in order.

    Raises:
        ConfigError: the zone or month is not understood, both ways are used, the range is empty, or nothing says
            which days are meant.
    """
    known_zone(zone)
    if month is not None:
        if first or last:
            raise ConfigError("both a month and a first or last day were given; give one or the other")
        begin, end = month_of(month)
        return Period(begin, end, zone, month)
    if not held and not (first and last):
        raise ConfigError("the lake has no rows yet, so there is no period to report; ingest files, or name a month")
    begin, end = first or held[0], last or held[-1]
    if begin > end:
        raise ConfigError(f"the first day {begin} is after the last day {end}; give them in order")
    whole = month_of(f"{begin:%Y-%m}") == (begin, end)
    return Period(begin, end, zone, f"{begin:%Y-%m}" if whole else None)


def known_zone(zone: str) -> None:
    """Check a time zone.

    Raises:
        ConfigError: the IANA database of this machine has no such zone.
    """
    try:
        zoneinfo.ZoneInfo(zone)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ConfigError(f"time zone {zone!r} is not known; name one such as UTC or Europe/Berlin") from error
