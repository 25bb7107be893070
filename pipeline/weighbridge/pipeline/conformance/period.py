"""Cases of days and months in a billing zone: to which of them a moment belongs, and what a range of them adds up to.

`input.timezone` is the zone, `input.records` a list of {time, cost, calls}, `context.range` the first and last day,
both inclusive. `day` and `period` (month) are of the records in their order; sums are of days by that clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from weighbridge.pipeline.conformance.case import Case, count, mapping, money
from weighbridge.pipeline.conformance.compare import differs
from weighbridge.pipeline.conformance.malformed import MalformedCaseError
from weighbridge.pipeline.ingest.record_fields import iso_time
from weighbridge.pipeline.invoice.zones import by_day, day_of, month_of

INPUT = frozenset({"provider", "api", "model", "timezone", "records", "context"})
CONTEXT = frozenset({"range"})
EXPECT = frozenset({"day", "period", "day_cost", "day_calls", "range_cost", "range_calls", "note"})
_FIELDS = frozenset({"time", "cost", "calls"})


def unknown_fields(case: Case) -> Iterator[str]:
    """Fields of the records that nothing here reads, each as its path.

    Raises:
        MalformedCaseError: there are no records, or they are no objects.
    """
    for name in sorted({name for record in _records(case) for name in record} - _FIELDS):
        yield f"input.records.{name}"


def compared_period(case: Case) -> Iterator[str | None]:
    """One item for each thing the case asserts: the difference in words, or null where there is none.

    Raises:
        MalformedCaseError: a record, the zone, the range or an expectation cannot be read.
    """
    zone, records = _zone(case), _records(case)
    moments = [_moment(record) for record in records]
    lists: dict[str, Callable[[datetime], str]] = {
        "day": lambda moment: day_of(moment, zone).isoformat(),
        "period": lambda moment: month_of(moment, zone),
    }
    for name, told in lists.items():
        if name in case.expect:
            expected = case.expect[name]
            if not isinstance(expected, list) or not all(isinstance(each, str) for each in expected):
                raise MalformedCaseError(f"expect.{name} is no list of texts")
            found = [told(moment) for moment in moments]
            yield None if found == expected else f"{name} is not as expected in {_places(found, expected)}"
    costs = by_day(moments, [money(record.get("cost"), "input.records.cost") for record in records], zone)
    calls = by_day(moments, [_calls(record) for record in records], zone)
    yield from _sums(case, "cost", costs, money)
    yield from _sums(case, "calls", calls, count)


def _sums(
    case: Case, what: str, sums: Mapping[date, Decimal | None], read: Callable[[object, str], Decimal | int | None]
) -> Iterator[str | None]:
    """The days a case names, and its whole range."""
    for day, told in mapping(case.expect.get(f"day_{what}", {}), f"expect.day_{what}").items():
        on = _day(day, f"expect.day_{what}")
        yield differs(f"day_{what}.{on}", read(told, f"expect.day_{what}"), sums.get(on, Decimal(0)))
    if f"range_{what}" not in case.expect:
        return
    first, last = _range(case)
    inside = [paid for day, paid in sums.items() if first <= day <= last]
    whole = None if None in inside else sum((paid for paid in inside if paid is not None), start=Decimal(0))
    yield differs(f"range_{what}", read(case.expect[f"range_{what}"], f"expect.range_{what}"), whole)


def _records(case: Case) -> list[Mapping[str, Any]]:
    records = case.given.get("records")
    if not isinstance(records, list) or not records:
        raise MalformedCaseError("input.records is missing; a list of records is expected")
    return [mapping(record, "input.records") for record in records]


def _zone(case: Case) -> str:
    zone = case.given.get("timezone")
    try:
        return ZoneInfo(zone).key if isinstance(zone, str) else ZoneInfo("").key
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise MalformedCaseError("input.timezone is no IANA time zone") from None


def _moment(record: Mapping[str, Any]) -> datetime:
    found = iso_time(record.get("time"))
    if found is None:
        raise MalformedCaseError("input.records.time is no ISO 8601 time")
    return found


def _calls(record: Mapping[str, Any]) -> Decimal | None:
    number = count(record.get("calls", 1), "input.records.calls")
    return None if number is None else Decimal(number)


def _range(case: Case) -> tuple[date, date]:
    told = case.context.get("range")
    if not isinstance(told, list) or len(told) != len(("first", "last")):
        raise MalformedCaseError("input.context.range is no list of two days")
    return _day(told[0], "input.context.range"), _day(told[1], "input.context.range")


def _day(told: object, where: str) -> date:
    try:
        return date.fromisoformat(str(told))
    except ValueError:
        raise MalformedCaseError(f"{where} has something that is no day") from None


def _places(found: list[str], expected: list[str]) -> str:
    if len(found) != len(expected):
        return f"length: {len(found)} records, {len(expected)} expected"
    wrong = [str(place) for place, pair in enumerate(zip(found, expected, strict=True), 1) if pair[0] != pair[1]]
    return f"place {', '.join(wrong)}"
