"""The kinds of values a knob or a line of a table may have, each with the function that checks one."""

from __future__ import annotations

import os
import re
import shlex
import zoneinfo
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

from weighbridge.pipeline.settings.shape import InsideError, Kind, Shape
from weighbridge.schemas.enumerations import Severity
from weighbridge.schemas.identity import NAME

# What may compute a reconciliation; `reconcile.engines` has one module for each.
ENGINES = ("polars", "duckdb", "spark")
LOG_LEVELS = ("debug", "info", "warning", "error")
_CENTURY = 36_500
_FEWEST_DAYS, _MOST_DAYS = 7, 366
_MILLION = 1_000_000
_MINUTE = 60
SOURCE_KINDS = ("files", "litellm")
ON_FAILURE = ("note", "stop")


def _one_of(words: Sequence[str]) -> Callable[[str, Path], str]:
    def check(value: str, _: Path) -> str:
        if value not in words:
            raise ValueError(", ".join(words))
        return value

    return check


def _like(pattern: str, allowed: str) -> Callable[[str, Path], str]:
    def check(value: str, _: Path) -> str:
        if not re.fullmatch(pattern, value):
            raise ValueError(allowed)
        return value

    return check


def _location(value: str, folder: Path) -> str:
    if not value:
        raise ValueError("a folder or an object-store URL such as s3://bucket/lake")
    return value if "://" in value else str((folder / Path(value).expanduser()).absolute())


def _path(value: str, folder: Path) -> Path:
    if not value:
        raise ValueError("a path")
    return (folder / Path(value).expanduser()).absolute()


def _paths(value: str | list[object], folder: Path) -> tuple[Path, ...]:
    items = value.split(os.pathsep) if isinstance(value, str) else value
    if not all(isinstance(item, str) for item in items):
        raise ValueError("a list of paths")
    return tuple(_path(str(item), folder) for item in items if item)


def _maybe_path(value: str, folder: Path) -> Path | None:
    return _path(value, folder) if value else None


def _words(value: str | list[object], _: Path) -> tuple[str, ...]:
    allowed = "a program and its arguments, in the environment quoted as for a shell"
    try:
        items = shlex.split(value) if isinstance(value, str) else value
    except ValueError:
        raise ValueError(allowed) from None
    if not all(isinstance(item, str) and item for item in items):
        raise ValueError(allowed)
    return tuple(map(str, items))


def _variable(value: str, _: Path) -> str:
    if value and not value.isidentifier():
        raise ValueError("the name of an environment variable")
    return value


def _whole(value: int | str, _: Path) -> int:
    text = str(value)
    if isinstance(value, bool) or not text.isascii() or not text.isdigit():
        raise ValueError("a whole number from 0 up")
    return int(text)


def _some(value: int | str, _: Path) -> int:
    text = str(value)
    if isinstance(value, bool) or not text.isascii() or not text.isdigit() or not 1 <= int(text) <= _MILLION:
        raise ValueError(f"a whole number from 1 to {_MILLION}")
    return int(text)


def _zone(value: str, _: Path) -> str:
    try:
        zoneinfo.ZoneInfo(value)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError("a time zone of the IANA database, such as UTC or Europe/Berlin") from error
    return value


def _line(value: str, _: Path) -> str:
    if not value.strip() or "\n" in value:
        raise ValueError("one line of text")
    return value


def _days(value: int, _: Path) -> int:
    if not 0 <= value <= _CENTURY:
        raise ValueError(f"a number of days from 0 to {_CENTURY}")
    return value


def _codes(value: list[object], _: Path) -> frozenset[str]:
    if not all(isinstance(item, str) and re.fullmatch(r"[a-z][a-z0-9_]{2,47}", item) for item in value):
        raise ValueError("a list of codes of findings, as `weighbridge findings ls` shows them")
    return frozenset(map(str, value))


def _amount(value: str, _: Path) -> Decimal:
    if not re.fullmatch(r"[0-9]{1,18}(\.[0-9]{1,18})?", value):
        raise ValueError('an amount in quotes, such as "0.50"')
    return Decimal(value)


def _rate(value: float, _: Path) -> Fraction:
    if not 0 < value <= 1 / 2:  # which a NaN is not either
        raise ValueError("a share above 0 and not above 0.5")
    return Fraction(str(value))


def _share(value: float, _: Path) -> Fraction:
    if not 0 < value <= 1:  # which a NaN is not either
        raise ValueError("a share above 0 and not above 1")
    return Fraction(str(value))


def _yes(value: bool, _: Path) -> bool:
    return value


def _range(value: list[object], _: Path) -> tuple[int, int]:
    low, high = value if len(value) == len(("low", "high")) else (None, None)
    if not (type(low) is int and type(high) is int and 0 <= low <= high):
        raise ValueError("the lowest and the highest whole number of tokens, such as [50, 100]")
    return low, high


def _window(value: int, _: Path) -> int:
    if not _FEWEST_DAYS <= value <= _MOST_DAYS:
        raise ValueError(f"a number of days from {_FEWEST_DAYS} to {_MOST_DAYS}")
    return value


def _few(value: int, _: Path) -> int:
    if not 1 <= value <= _MINUTE:
        raise ValueError(f"a whole number from 1 to {_MINUTE}")
    return value


def _address(value: str, _: Path) -> str:
    if value and not re.fullmatch(r"https?://[^\s/]+(/\S*)?", value):
        raise InsideError("", "is no address that begins with https:// or http:// (not shown: it may hold a secret)")
    return value


def _severity(value: str, _: Path) -> Severity:
    try:
        return Severity(value)
    except ValueError:
        raise ValueError(", ".join(Severity)) from None


def _secret_variable(value: str, _: Path) -> str:
    if not value.isidentifier():
        raise InsideError("", "is no name of an environment variable (not shown: it may hold a secret)")
    return value


def _first_day(value: str, _: Path) -> datetime:
    try:
        day = date.fromisoformat(value)
    except ValueError:
        raise ValueError('a day, such as "2026-03-01"') from None
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


def table(shape: Shape) -> Kind:
    """A table of this shape."""
    return Kind("a table", (dict,), shape.parse, shape)


LOCATION = Kind("text", (str,), _location)
PATH = Kind("text", (str,), _path)
MAYBE_PATH = Kind("text", (str,), _maybe_path)
WORDS = Kind("a list of texts", (list,), _words)
VARIABLE = Kind("text", (str,), _variable)
PATHS = Kind("a list of texts", (list,), _paths)
WHOLE = Kind("a whole number", (int,), _whole)
ZONE = Kind("text", (str,), _zone)
LEVEL = Kind("text", (str,), _one_of(LOG_LEVELS))
ENGINE = Kind("text", (str,), _one_of(ENGINES))
LINE = Kind("text", (str,), _line)
SOME = Kind("a whole number", (int,), _some)
DAYS = Kind("a whole number", (int,), _days)
CODES = Kind("a list of texts", (list,), _codes)
AMOUNT = Kind("text", (str,), _amount)
RATE = Kind("a fraction", (float, int), _rate)
SHARE = Kind("a fraction", (float, int), _share)
YES = Kind("true or false", (bool,), _yes)
RANGE = Kind("a list of two whole numbers", (list,), _range)
WINDOW = Kind("a whole number", (int,), _window)
FEW = Kind("a whole number", (int,), _few)
ADDRESS = Kind("text", (str,), _address)
SECRET_VARIABLE = Kind("text", (str,), _secret_variable)
_IMPORTER = "the name of an importer, as `weighbridge ingest --importer` takes it"
IMPORTER = Kind("text", (str,), _like(r"[a-z][a-z0-9_]{0,63}", _IMPORTER))
GIVEN_NAME = Kind("text", (str,), _like(NAME.pattern, "a name: letters, digits and ._:/@-, at most 128"))
_SHORT = "a short word: small letters, digits, - and _, at most 32, the first a letter"
SOURCE_NAME = Kind("text", (str,), _like(r"[a-z][a-z0-9_-]{0,31}", _SHORT))
SOURCE_KIND = Kind("text", (str,), _one_of(SOURCE_KINDS))
ON_FAILURES = Kind("text", (str,), _one_of(ON_FAILURE))
FIRST_DAY = Kind("text", (str,), _first_day)
SEVERITY = Kind("text", (str,), _severity)
