"""UTC months as they are written: `YYYY-MM`."""

from __future__ import annotations

import re
from calendar import monthrange
from datetime import date

from weighbridge.schemas.errors import ConfigError

_MONTH = re.compile(r"(\d{4})-(0[1-9]|1[0-2])")


def checked(month: str) -> str:
    """`month` itself.

    Raises:
        ConfigError: it is no month.
    """
    found = _MONTH.fullmatch(month)
    if found is None or found[1] == "0000":
        raise ConfigError(f"{month!r} is no month; write it as YYYY-MM, for example 2026-03")
    return month


def ends(month: str) -> tuple[date, date]:
    """The first and the last day of a month."""
    year, number = int(month[:4]), int(month[5:])
    return date(year, number, 1), date(year, number, monthrange(year, number)[1])


def month_of(day: date) -> str:
    """The month a day lies in."""
    return f"{day.year:04d}-{day.month:02d}"
