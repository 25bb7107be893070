"""Cases of records that tell a total and what it cost: is the cost one that so many tokens can have?

`input.records` is a list of {attempt_id, total_tokens, reported_cost}; `context.highest_price_per_million_in_book` is
the dearest price there is. The cost is judged, never mended.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

from weighbridge.pipeline.conformance.case import Case, mapping, money
from weighbridge.pipeline.conformance.compare import compared
from weighbridge.pipeline.conformance.malformed import MalformedCaseError
from weighbridge.pipeline.ingest.reading import UsageReading, read_usage
from weighbridge.pipeline.price.plausible import IMPLAUSIBLE_PRICE, implausible

HIGHEST = "highest_price_per_million_in_book"
INPUT = frozenset({"provider", "api", "model", "context", "records"})
CONTEXT = frozenset({HIGHEST})
EXPECT = frozenset({"total", "flags", "not_flags", "note"})
_FIELDS = frozenset({"attempt_id", "total_tokens", "reported_cost"})


def unknown_fields(case: Case) -> Iterator[str]:
    """Fields of the records that nothing here reads, each as its path.

    Raises:
        MalformedCaseError: there are no records, or they are no objects.
    """
    for name in sorted({name for record in _records(case) for name in record} - _FIELDS):
        yield f"input.records.{name}"


def compared_costs(case: Case) -> Iterator[str | None]:
    """One item for each thing the case asserts: the difference in words, or null where there is none.

    Raises:
        MalformedCaseError: a record or an expectation cannot be read.
    """
    highest = money(case.context.get(HIGHEST), f"input.context.{HIGHEST}")
    if highest is None:
        raise MalformedCaseError(f"input.context.{HIGHEST} is missing; a plain decimal in quotes is expected")
    readings = [_judged(case, record, highest) for record in _records(case)]
    totals = [reading.total for reading in readings]
    flags = sorted({flag for reading in readings for flag in reading.flags})
    whole = None if None in totals else sum(total or 0 for total in totals)
    yield from compared(case, replace(readings[0], total=whole, flags=tuple(flags)), lambda _, __: None)


def _records(case: Case) -> list[Mapping[str, Any]]:
    records = case.given.get("records")
    if not isinstance(records, list) or not records:
        raise MalformedCaseError("input.records is missing; a list of records is expected")
    return [mapping(record, "input.records") for record in records]


def _judged(case: Case, record: Mapping[str, Any], highest: Decimal) -> UsageReading:
    told = {"total": record["total_tokens"]} if "total_tokens" in record else {}
    reading = read_usage({"provider": case.provider, "api": "declared", "usage": told})
    cost = money(record.get("reported_cost"), "input.records.reported_cost")
    if cost is None or not implausible(cost, reading.total, highest):
        return reading
    return replace(reading, flags=tuple(sorted((*reading.flags, IMPLAUSIBLE_PRICE))))
