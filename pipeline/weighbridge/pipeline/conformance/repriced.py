"""Cases of periods that are closed, and of prices that changed later: the close keeps its amount.

`input.records` is a list of {period, status, total_tokens, cost_at_close, cost_with_new_prices}. What the new prices
would change stands in a finding, `finding_amount`; the flag `closed_period_not_repriced` says that nothing else did.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

from weighbridge.pipeline.conformance.case import Case, count, mapping, money, names
from weighbridge.pipeline.conformance.compare import differs
from weighbridge.pipeline.conformance.malformed import MalformedCaseError
from weighbridge.pipeline.price.repriced import NOT_REPRICED, Repriced

INPUT = frozenset({"provider", "api", "model", "records"})
EXPECT = frozenset({"total", "cost", "finding_amount", "flags", "not_flags", "note"})
_AMOUNTS = ("cost_at_close", "cost_with_new_prices")
_FIELDS = frozenset({"period", "status", "total_tokens", *_AMOUNTS})


def is_one(case: Case) -> bool:
    """Whether a case is about closed periods."""
    records = case.given.get("records")
    return isinstance(records, list) and any(isinstance(one, Mapping) and _AMOUNTS[0] in one for one in records)


def unknown_fields(case: Case) -> Iterator[str]:
    """Fields of the records that nothing here reads, each as its path."""
    for name in sorted({name for record in _records(case) for name in record} - _FIELDS):
        yield f"input.records.{name}"


def compared_closes(case: Case) -> Iterator[str | None]:
    """One item for each thing the case asserts: the difference in words, or null where there is none.

    Raises:
        MalformedCaseError: a record or an expectation cannot be read.
    """
    whole, total, flags = Repriced(Decimal(0), Decimal(0)), 0, set()
    for record in _records(case):
        if record.get("status") not in {"open", "closed"}:
            raise MalformedCaseError("input.records.status is neither open nor closed")
        then, now = (money(record.get(name), f"input.records.{name}") for name in _AMOUNTS)
        tokens = count(record.get("total_tokens"), "input.records.total_tokens")
        if then is None or now is None or tokens is None:
            raise MalformedCaseError(f"input.records lacks one of total_tokens, {', '.join(_AMOUNTS)}")
        one = Repriced.of(then, now, closed=record["status"] == "closed")
        whole = replace(whole, amount=whole.amount + one.amount, difference=whole.difference + one.difference)
        total += tokens
        flags |= {NOT_REPRICED} if one.kept else set()
    expect = case.expect
    if "total" in expect:
        yield differs("total", count(expect["total"], "expect.total"), total)
    for name, found in (("cost", whole.amount), ("finding_amount", whole.difference)):
        if name in expect:
            yield differs(name, money(expect[name], f"expect.{name}"), found)
    for flag in names(expect.get("flags", []), "expect.flags"):
        yield None if flag in flags else f"flags: {flag} is not raised"
    for flag in names(expect.get("not_flags", []), "expect.not_flags"):
        yield f"not_flags: {flag} is raised" if flag in flags else None


def _records(case: Case) -> list[Mapping[str, Any]]:
    return [mapping(record, "input.records") for record in case.given["records"]]
