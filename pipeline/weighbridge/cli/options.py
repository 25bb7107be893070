"""The options that several verbs share, declared once."""

from __future__ import annotations

import re
from datetime import date, datetime
from pathlib import Path
from typing import Annotated

import typer

# A zone shifts the ends of a month by hours: no period may touch the first or last day a calendar can name.
_FIRST_YEAR, _LAST_YEAR = 1900, 2199
_MONTH = re.compile(r"(19|20|21)[0-9]{2}-(0[1-9]|1[0-2])")


def parse_month(text: str) -> str:
    """A month written `YYYY-MM`."""
    if not _MONTH.fullmatch(text):
        raise typer.BadParameter(f"{text!r} is no month from 1900 to 2199; write it as YYYY-MM, such as 2026-03")
    return text


def is_month(text: str) -> bool:
    """Whether this is a month written `YYYY-MM`."""
    return _MONTH.fullmatch(text) is not None


def parse_day(text: str) -> date:
    """A day written `YYYY-MM-DD` or `YYYYMMDD`."""
    for form in ("%Y-%m-%d", "%Y%m%d"):
        try:
            day = datetime.strptime(text, form).date()  # noqa: DTZ007 - a calendar day has no zone
        except ValueError:
            continue
        if _FIRST_YEAR <= day.year <= _LAST_YEAR and text in {day.strftime("%Y-%m-%d"), day.strftime("%Y%m%d")}:
            return day
    raise typer.BadParameter(f"{text!r} is no day from 1900 to 2199; write YYYY-MM-DD or YYYYMMDD, such as 2026-03-31")


def check_range(since: date | None, until: date | None) -> None:
    """Refuse a range that ends before it begins: nothing lies in it, which is never what was meant."""
    if since is not None and until is not None and until < since:
        raise typer.BadParameter(f"--until {until} is before --since {since}; give the first day, then the last")


AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Month = Annotated[
    str | None,
    typer.Option("--month", metavar="YYYY-MM", parser=parse_month, help="Only this UTC month; all where left out."),
]
AsOf = Annotated[
    date | None,
    typer.Option(
        "--as-of",
        metavar="DAY",
        parser=parse_day,
        help="The UTC day it is: what may still come is provisional; default: today.",
    ),
]
Since = Annotated[
    date | None, typer.Option("--since", metavar="DAY", parser=parse_day, help="First day, YYYY-MM-DD or YYYYMMDD.")
]
Until = Annotated[
    date | None, typer.Option("--until", metavar="DAY", parser=parse_day, help="Last day, inclusive, written likewise.")
]
EngineName = Annotated[
    str | None,
    typer.Option("--engine", metavar="NAME", help="polars, duckdb or spark; that of the settings if left out."),
]
Timezone = Annotated[
    str | None, typer.Option("--timezone", metavar="ZONE", help="Time zone of the days, such as Europe/Berlin.")
]
Config = Annotated[
    Path | None,
    typer.Option("--config", metavar="PATH", help="Settings file, or its folder; found here or above if left out."),
]
AcceptClock = Annotated[
    bool,
    typer.Option("--accept-clock", help="The clock is right, though it is far ahead of everything known here."),
]
LogLevel = Annotated[
    str | None,
    typer.Option("--log-level", metavar="LEVEL", help="debug, info, warning or error; the log goes to standard error."),
]
