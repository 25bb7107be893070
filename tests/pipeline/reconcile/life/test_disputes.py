"""Disputes and credits: what is asked for, what came back, and what is left."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Context, Decimal
from functools import reduce
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.pipeline.reconcile.conftest import World
from tests.sampling import examples

from weighbridge.pipeline.lake import Lake, polars_schema
from weighbridge.pipeline.reconcile.life.disputes import disputes
from weighbridge.pipeline.reconcile.life.status import acknowledge, close, credit, dispute, life, reopen
from weighbridge.schemas.enumerations import Severity
from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.finding import Finding

NOW = datetime(2026, 3, 4, 9, 30, tzinfo=UTC)
LATER = NOW + timedelta(days=40)
WHO: dict[str, Any] = {"by": "ann", "now": NOW}


def finding(name: str, amount: str | None, currency: str | None = "USD", provider: str = "openai") -> Finding:
    return Finding(
        code="duplicate_report",
        severity=Severity.WARNING,
        period="2026-03",
        subject={"provider": provider, "model": name},
        rows=1,
        cure="-",
        amount=None if amount is None else Decimal(amount),
        currency=None if amount is None else currency,
    )


def put(lake: Lake, *found: Finding) -> list[str]:
    """Findings in the lake, in the place of what was there; their ids."""
    frame = pl.DataFrame([each.row() for each in found], schema=polars_schema("finding"))
    lake.replace("finding", frame, days=None)
    return [each.finding_id for each in found]


@pytest.fixture
def lake(world: World) -> Lake:
    """An empty lake."""
    return world.lake()


def money(lake: Lake, finding_id: str) -> tuple[str, Decimal | None, Decimal | None, Decimal | None]:
    """State, disputed, credited, outstanding."""
    row = next(each for each in life(lake, LATER.date()).iter_rows(named=True) if each["finding_id"] == finding_id)
    return row["state"], row["disputed"], row["credited"], row["outstanding"]


def test_credits_in_parts_leave_the_rest_disputed(lake: Lake) -> None:
    """12.50 disputed, 5 and 7.25 come back: 0.25 is left; with 0.25 more it is credited."""
    (one,) = put(lake, finding("m", "12.50"))
    dispute(lake, one, reference="CASE-7", **WHO)
    assert money(lake, one) == ("disputed", Decimal("12.5"), None, Decimal("12.5"))
    assert credit(lake, one, amount=Decimal(5), reference="inv-9/line-3", **WHO) == (one, True)
    assert credit(lake, one, amount=Decimal(5), reference="inv-9/line-3", **WHO) == (one, False)  # the same credit
    assert money(lake, one) == ("disputed", Decimal("12.5"), Decimal(5), Decimal("7.5"))
    credit(lake, one, amount=Decimal("7.25"), **WHO)
    assert money(lake, one) == ("disputed", Decimal("12.5"), Decimal("12.25"), Decimal("0.25"))
    credit(lake, one, amount=Decimal("0.25"), **WHO)
    assert money(lake, one) == ("credited", Decimal("12.5"), Decimal("12.5"), Decimal(0))
    close(lake, one, **WHO)
    assert money(lake, one)[0] == "closed"


def test_more_may_come_back_than_was_asked_for(lake: Lake) -> None:
    (one,) = put(lake, finding("m", "1"))
    dispute(lake, one, **WHO)
    credit(lake, one, amount=Decimal("1.5"), **WHO)
    assert money(lake, one) == ("credited", Decimal(1), Decimal("1.5"), Decimal("-0.5"))


def test_another_amount_may_be_disputed_than_the_finding_has(lake: Lake) -> None:
    (one,) = put(lake, finding("m", "1"))
    dispute(lake, one, amount=Decimal("0.75"), reference="A-1", **WHO)
    dispute(lake, one, amount=Decimal("0.80"), reference="A-1", **WHO)
    assert money(lake, one) == ("disputed", Decimal("0.8"), None, Decimal("0.8"))


def test_a_dispute_of_an_unknown_amount_has_no_rest(lake: Lake) -> None:
    """Unknown is not zero: nothing is told to be outstanding, and any credit is one."""
    (one,) = put(lake, finding("m", None))
    dispute(lake, one, reference="A-1", **WHO)
    assert money(lake, one) == ("disputed", None, None, None)
    credit(lake, one, amount=Decimal(2), currency="EUR", **WHO)
    assert money(lake, one) == ("credited", None, Decimal(2), None)


def test_what_was_charged_too_little_is_nothing_to_ask_for(lake: Lake) -> None:
    (one,) = put(lake, finding("m", "-3"))
    dispute(lake, one, **WHO)
    assert money(lake, one) == ("disputed", None, None, None)


def test_sums_are_by_provider_and_currency(lake: Lake) -> None:
    """Two of one provider in dollars (one closed with 2 given up), one in euros, one of another provider, unknown."""
    ids = put(
        lake,
        finding("a", "10"),
        finding("b", "5"),
        finding("c", "7", "EUR"),
        finding("d", None, provider="xai"),
        finding("e", "99"),
    )
    for each in ids[:4]:
        dispute(lake, each, **WHO)
    credit(lake, ids[0], amount=Decimal(4), **WHO)
    credit(lake, ids[1], amount=Decimal(3), **WHO)
    close(lake, ids[1], **WHO)
    acknowledge(lake, ids[4], **WHO)
    rows = disputes(lake, LATER.date()).rows()
    assert rows == [
        ("openai", "EUR", 1, Decimal(7), Decimal(0), Decimal(7), Decimal(0), 0),
        ("openai", "USD", 2, Decimal(15), Decimal(7), Decimal(6), Decimal(2), 0),
        ("xai", None, 1, Decimal(0), Decimal(0), Decimal(0), Decimal(0), 1),
    ]


def test_a_dispute_that_is_taken_back_is_in_no_sum(lake: Lake) -> None:
    (one,) = put(lake, finding("m", "1"))
    dispute(lake, one, **WHO)
    acknowledge(lake, one, reason="we were wrong", **WHO)
    assert disputes(lake, LATER.date()).is_empty()


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"amount": Decimal(0)}, "above zero"),
        ({"amount": Decimal(-1)}, "above zero"),
        ({"amount": Decimal("NaN")}, "above zero"),
        ({"amount": Decimal("1E-19")}, "more than 18 places"),
        ({"amount": Decimal("1E+20")}, "more than 18 places or 20 digits"),
        ({"amount": Decimal(1), "currency": "usd"}, "three capital letters"),
        ({"reference": "a ticket"}, "the reference has signs"),
    ],
)
def test_money_that_is_none_is_refused(lake: Lake, asked: dict[str, Any], message: str) -> None:
    (one,) = put(lake, finding("m", "1"))
    with pytest.raises(ConfigError, match=message):
        dispute(lake, one, **asked, **WHO)
    assert lake.rows("finding_status") == 0


def test_a_credit_in_another_currency_is_no_credit_of_the_dispute(lake: Lake) -> None:
    (one,) = put(lake, finding("m", "1"))
    dispute(lake, one, **WHO)
    with pytest.raises(ConfigError, match="in USD and the credit in EUR"):
        credit(lake, one, amount=Decimal(1), currency="EUR", **WHO)


def test_a_closed_finding_opens_where_more_money_is_at_stake(lake: Lake) -> None:
    """With the same amount, less, or none it stays closed; in another currency nobody decided about it."""
    (one,) = put(lake, finding("m", "3"))
    acknowledge(lake, one, **WHO)
    close(lake, one, **WHO)
    for amount, currency, state in (
        ("3", "USD", "closed"),
        ("-2.99", "USD", "closed"),
        (None, None, "closed"),
        ("3.01", "USD", "open"),
        ("-3.01", "USD", "open"),
        ("3", "EUR", "open"),
    ):
        put(lake, finding("m", amount, currency))
        assert money(lake, one)[0] == state, amount
    acknowledge(lake, one, **WHO)
    close(lake, one, **WHO)
    assert money(lake, one)[0] == "closed"


def test_a_closed_finding_is_opened_by_hand_with_a_reason(lake: Lake) -> None:
    (one,) = put(lake, finding("m", "3"))
    acknowledge(lake, one, **WHO)
    close(lake, one, **WHO)
    with pytest.raises(ConfigError, match="needs a reason"):
        reopen(lake, one, reason=" ", **WHO)
    reopen(lake, one, reason="they took it back", **WHO)
    assert money(lake, one)[0] == "open"


@settings(max_examples=examples(3, 60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.decimals("0.000000000000000001", "99999999999", places=18), min_size=1, max_size=3))
def test_disputed_is_what_was_credited_and_what_is_left(world: World, parts: list[Decimal]) -> None:
    lake = world.lake()
    lake.replace("finding_status", pl.DataFrame(schema=polars_schema("finding_status")), days=None)
    (one,) = put(lake, finding("m", "1"))
    whole = reduce(Context(prec=60).add, parts)
    dispute(lake, one, amount=whole, **WHO)
    for number, part in enumerate(parts):
        state, disputed, credited, rest = money(lake, one)
        assert (state, disputed) == ("disputed", whole)
        assert Context(prec=60).add(credited or Decimal(0), rest or Decimal(0)) == whole
        credit(lake, one, amount=part, reference=f"line-{number}", **WHO)
    assert money(lake, one) == ("credited", whole, whole, Decimal(0))
