"""What requests of a tenant and task cost, read once for all days that are asked about."""

from __future__ import annotations

from collections import Counter
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import polars as pl
import pytest
from tests.pipeline.baseline.memory import DAY, TENANT, Memory, Row, key

from weighbridge.pipeline.baseline import kindred
from weighbridge.pipeline.baseline.costs import share
from weighbridge.pipeline.baseline.kindred import Kindred
from weighbridge.pipeline.baseline.usage import SERIES

APART: dict[str, str | None] = {**dict.fromkeys(SERIES), "tenant": TENANT, "task": "chat", "model": "m-new"}
LAST = DAY + timedelta(days=9)


class Counting(Memory):
    """Tables that count how often each is read."""

    def __init__(self) -> None:
        super().__init__()
        self.read: Counter[str] = Counter()

    def scan(self, table: str, **asked: Any) -> pl.LazyFrame:
        """As `Lake.scan`."""
        self.read[table] += 1
        return super().scan(table, **asked)

    def paid(self, number: int, amount: str | None, *, booked: date | None = None, **columns: Any) -> None:
        """An attempt and what it cost, in one row or several; booked on its day if not said otherwise."""
        told: Row = {name: columns.pop(name) for name in ("source", "child", "revision", "currency") if name in columns}
        if not told.get("child") and not told.get("revision"):
            self.attempt(number, **columns)
        row: Row = {
            "day": booked or columns.get("day", DAY),
            "source": "api",
            "child": 0,
            "report": 0,
            "revision": 0,
            **told,
        }
        price: Row = {"basis": "reported", "currency": "USD", "amount": None if amount is None else Decimal(amount)}
        self.add("priced_amount", {**key(number), **price, **row})


def cost(records: Memory, first: date = DAY, last: date = LAST, **apart: str) -> tuple[Decimal, str] | None:
    """Of the days, without the new series."""
    return Kindred(records, first, last).cost(TENANT, "chat", APART | apart, first, last)


def test_the_cost_of_a_request_is_that_of_all_but_the_series() -> None:
    """A retry costs as well, and is no request; another tenant's and another task's are none of theirs."""
    records = Counting()
    records.paid(1, "1")
    records.paid(2, "2", attempt_number=2)
    records.paid(3, "4")
    records.paid(4, "100", model_served="m-new")
    records.paid(5, "100", task="search")
    records.paid(6, "100", tenant="t_00000000000000bb")
    assert cost(records) == (Decimal("3.5"), "USD")
    assert cost(records, model="m-1") == (Decimal(100), "USD")


def test_children_are_added_up_and_the_last_revision_counts() -> None:
    records = Counting()
    records.paid(1, "1")
    records.paid(1, "2", child=1)
    records.paid(1, "5", child=1, revision=1)
    assert cost(records) == (Decimal(6), "USD")


def test_only_the_days_that_are_asked_about_count() -> None:
    """Read once for all of them."""
    records = Counting()
    records.paid(1, "1")
    records.paid(2, "3", day=DAY + timedelta(days=4))
    held = Kindred(records, DAY, LAST)
    held.read(pl.DataFrame({"tenant": [TENANT, TENANT, None], "task": ["chat", "search", "chat"]}))
    days = [timedelta(days=number) for number in (0, 3, 4)]
    found = [held.cost(TENANT, "chat", APART, DAY, DAY + last) for last in days]
    assert found == [(Decimal(1), "USD"), (Decimal(1), "USD"), (Decimal(2), "USD")]
    assert held.cost(TENANT, "search", APART, DAY, LAST) is None
    assert records.read == {"attempt": 1, "priced_amount": 1}


def test_an_amount_that_is_booked_two_days_late_still_counts() -> None:
    """One that is booked later counts once the days that are asked about come within two days of it."""
    records = Counting()
    records.paid(1, "1", booked=DAY + timedelta(days=2))
    records.paid(2, "3", booked=DAY + timedelta(days=3))
    held = Kindred(records, DAY, LAST)
    found = [held.cost(TENANT, "chat", APART, DAY, last) for last in (DAY, DAY + timedelta(days=1))]
    assert found == [(Decimal("0.5"), "USD"), (Decimal(2), "USD")]


def test_nothing_is_told_where_a_price_is_unknown_or_currencies_differ() -> None:
    unknown, mixed = Counting(), Counting()
    for records in (unknown, mixed):
        records.paid(1, "1")
    unknown.paid(2, None)
    mixed.paid(2, "1", currency="EUR")
    assert cost(unknown) is None
    assert cost(mixed) is None
    assert cost(Counting()) is None


@pytest.mark.parametrize("batch", [10**6, 4])
def test_attempts_are_summed_up_but_for_those_of_which_the_days_decide(
    monkeypatch: pytest.MonkeyPatch, batch: int
) -> None:
    """Told by two sources for one day, or with an amount of a day later: summed. Read in parts: the same."""
    monkeypatch.setattr(kindred, "BATCH", batch)
    records = Counting()
    for number in range(30):
        where: Row = {"day": DAY + timedelta(days=number % 2), "model_served": "m-1" if number % 3 else "m-new"}
        records.paid(number, "1", **where)
        records.attempt(number, **where, source="gateway")
    records.paid(30, "4", booked=DAY + timedelta(days=2))
    held = Kindred(records, DAY, LAST)
    assert held.cost(TENANT, "chat", APART, DAY, LAST) == (share(Decimal(24), 21), "USD")
    assert held.held == 4
    records.paid(31, "6", booked=DAY + timedelta(days=3))
    records.paid(32, "8", day=DAY + timedelta(days=1), booked=DAY + timedelta(days=2))
    records.attempt(32, day=DAY + timedelta(days=2), source="gateway")
    held = Kindred(records, DAY, LAST)
    assert held.cost(TENANT, "chat", APART, DAY, DAY) == (share(Decimal(14), 12), "USD")
    assert held.cost(TENANT, "chat", APART, DAY + timedelta(days=2), LAST) == (Decimal(8), "USD")
    assert held.held == 4 + 2 + 3
