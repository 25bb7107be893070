"""Money and times as bills write them: every digit that is there, and the reason where there is none to be had."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from decimal import ROUND_HALF_EVEN, Context, Decimal
from typing import NamedTuple

from weighbridge.pipeline.ingest.call_days import FIRST, LAST
from weighbridge.pipeline.ingest.record_fields import iso_time
from weighbridge.schemas.enumerations import QuarantineReason

# Beyond these an amount does not fit the lake: 20 digits before the point, 18 behind it.
LARGEST = Decimal(10) ** 20
PLACES = Decimal(1).scaleb(-18)
FLOAT_AMOUNT, ROUNDED = "float_amount", "rounded_to_18_places"
_WIDE = Context(prec=60)
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?")
_NOT_FINITE = re.compile(r"[+-]?(nan|inf|infinity)", re.IGNORECASE)
_DAY = re.compile(r"(\d{4})-(\d{2})-(\d{2})")
_COMPACT_DAY = re.compile(r"(\d{4})(\d{2})(\d{2})")
_US = re.compile(r"(\d{1,2})/(\d{1,2})/(\d{4}|\d{2})(?: (\d{1,2}):(\d{2})(?::(\d{2}))?)?")
_CENTURY = 2000


class Amount(NamedTuple):
    """An amount as it was read: its value, why it has none, and what was noticed."""

    value: Decimal | None
    reason: QuarantineReason | None = None
    note: str | None = None


def amount(value: object) -> Amount:
    """An amount from the digits of a text or of a JSON number; nothing there is no amount and no mistake.

    A float of a Parquet file is its shortest decimal text. Digits behind the 18th place are rounded half-even and
    noted: they are less than any currency can pay.
    """
    if value is None or value == "":
        return Amount(None)
    if isinstance(value, bool):
        return Amount(None, QuarantineReason.TYPE)
    note = FLOAT_AMOUNT if isinstance(value, float) else None
    text = repr(value) if isinstance(value, float) else str(value).strip()
    if _NOT_FINITE.fullmatch(text):
        return Amount(None, QuarantineReason.NOT_A_NUMBER)
    if not isinstance(value, str | int | float | Decimal) or not _NUMBER.fullmatch(text):
        return Amount(None, QuarantineReason.TYPE)
    found = Decimal(text)
    if abs(found) >= LARGEST:
        return Amount(None, QuarantineReason.RANGE)
    shown = found.quantize(PLACES, ROUND_HALF_EVEN, context=_WIDE)
    return Amount(shown, None, note if shown == found else ROUNDED)


def moment(value: object) -> datetime | None:
    """A time in UTC: ISO 8601, a day, `2026-04-01 00:00:00 UTC`, or month/day/year as in the examples of FOCUS.

    Null for anything else: a day that would have to be guessed (day before month) is none.
    """
    if not isinstance(value, str):
        return None
    text = value.strip().removesuffix(" UTC")
    found = iso_time(text)
    if found is not None:
        return found
    for form in (_DAY, _COMPACT_DAY):
        if plain := form.fullmatch(text):
            return _made(*map(int, plain.groups()))
    american = _US.fullmatch(text)
    if american is None:
        return None
    month, day, year, hour, minute, second = (int(part or 0) for part in american.groups())
    return _made(year if year >= _CENTURY else _CENTURY + year, month, day, hour, minute, second)


def at_midnight(day: date) -> datetime:
    """The UTC midnight a day begins at."""
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


def _made(*parts: int) -> datetime | None:
    try:
        found = datetime(*parts, tzinfo=UTC)  # type: ignore[misc, arg-type]
    except ValueError:
        return None
    return found if FIRST <= found < LAST else None
