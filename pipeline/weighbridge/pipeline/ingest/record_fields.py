"""Single fields of someone else's record: names, identifiers, times, statuses. What does not look like one is null.

A field that is left out because it is no name or no identifier is noted, never repeated: it may hold any text.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import lru_cache

from weighbridge.pipeline.ingest.answers import ID_DROPPED, NAME_DROPPED
from weighbridge.pipeline.ingest.call_days import FIRST, LAST, LAST_S
from weighbridge.schemas.enumerations import QuarantineReason
from weighbridge.schemas.identity import IDENTIFIER, NAME
from weighbridge.schemas.leaves import Refusal

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DIGITS = re.compile(r"\d{1,20}")
_ISO = re.compile(r"\d{4}-\d{2}-\d{2}[T ][0-9:.,+\-Zz]{4,40}")
_INT32_MAX = 2**31 - 1


def at(record: object, *steps: str) -> object:
    """What stands at a path of a record, null where there is nothing."""
    for step in steps:
        if not isinstance(record, dict):
            return None
        record = record.get(step)
    return record


def name_of(value: object, notes: list[str]) -> str | None:
    """A name; that one was left out is noted."""
    if value is None or value == "":
        return None
    if isinstance(value, str) and _is_name(value):
        return value
    notes.append(NAME_DROPPED)
    return None


@lru_cache(maxsize=1024)
def _is_name(value: str) -> bool:
    """A log names the same few models and providers over and over."""
    return NAME.fullmatch(value) is not None


def id_of(value: object, notes: list[str]) -> str | None:
    """An identifier of another system; that one was left out is noted."""
    if value is None or value == "":
        return None
    if isinstance(value, str) and IDENTIFIER.fullmatch(value):
        return value
    notes.append(ID_DROPPED)
    return None


def iso_time(value: object) -> datetime | None:
    """A time as ISO 8601 text, in UTC where it names no zone; null where it is none."""
    if not isinstance(value, str) or not _ISO.fullmatch(value):
        return None
    try:
        found = datetime.fromisoformat(value)
    except ValueError:
        return None
    return _possible(found.replace(tzinfo=UTC) if found.tzinfo is None else found)


def refused_time(told: object, read: datetime | None) -> list[Refusal]:
    """The refusal of a call's time that is told and cannot be read, so that no call lands on a day it is not of."""
    unreadable = read is None and told is not None and told != ""
    return [Refusal("attempt.arrived_at", QuarantineReason.BAD_TIME)] if unreadable else []


def epoch_time(value: object, per_second: int = 1) -> datetime | None:
    """A time as a number since 1970, or the digits of one; fractions of a microsecond are cut off.

    Args:
        value: the number.
        per_second: how many of its units a second has.
    """
    number = digits(value)
    if number is None or not 0 <= number < LAST_S * per_second:
        return None
    return _possible(_EPOCH + timedelta(microseconds=number * 1_000_000 // per_second))


def digits(value: object) -> int | None:
    """A whole number that is not negative, or the digits of one; null for anything else."""
    if isinstance(value, str) and _DIGITS.fullmatch(value):
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value if value >= 0 else None
    # The range comes first: 1E+999999999 cannot be written out.
    if isinstance(value, Decimal) and value.is_finite() and 0 <= value < 10**20 and value == int(value):
        return int(value)
    return None


def small_number(value: object) -> int | None:
    """A whole number that fits an Int32 column."""
    number = digits(value)
    return number if number is not None and number <= _INT32_MAX else None


def http_status(value: object) -> int | None:
    """An HTTP status, as a number or its digits."""
    number = digits(value)
    return number if number is not None and 100 <= number <= 599 else None


def _possible(found: datetime) -> datetime | None:
    try:
        shown = found if found.tzinfo is UTC else found.astimezone(UTC)
    except OverflowError:
        return None
    return shown if FIRST <= shown < LAST else None
