"""Cases of costs: what no price of the book comes near is flagged, and a case that is not whole says what it lacks."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from weighbridge.pipeline.conformance import Outcome, run_case
from weighbridge.pipeline.price.plausible import implausible


def case(records: list[dict[str, Any]], highest: object = "75", **expect: object) -> dict[str, Any]:
    context = {} if highest is None else {"highest_price_per_million_in_book": highest}
    given = {"provider": "anyone", "api": "records", "records": records, "context": context}
    return {"id": "C1", "kind": "numeric", "input": given, "expect": expect}


@pytest.mark.parametrize(
    ("cost", "tokens", "told"),
    [
        ("919291.81", 170_308_898, True),
        ("75", 1_000_000, False),
        ("75.000000000001", 1_000_000, True),
        ("0", 0, False),
        ("0.01", 0, True),
        ("-0.01", 1_000_000, True),
        ("919291.81", None, False),
    ],
)
def test_a_cost_beyond_the_dearest_price_cannot_be_one(cost: str, tokens: int | None, told: bool) -> None:
    assert implausible(Decimal(cost), tokens, Decimal(75)) is told


def test_the_total_is_of_all_records_and_one_cost_is_enough() -> None:
    records = [{"total_tokens": 10, "reported_cost": "0.0001"}, {"total_tokens": 10, "reported_cost": "1"}]
    assert run_case(case(records, total=20, flags=["implausible-price"])).outcome is Outcome.PASS
    assert run_case(case(records[:1], total=10, not_flags=["implausible-price"])).outcome is Outcome.PASS
    assert run_case(case(records, total=21)).differences == ["total: expected 21, found 20"]
    assert run_case(case(records, not_flags=["implausible-price"])).outcome is Outcome.FAIL


def test_what_is_not_told_is_unknown() -> None:
    records: list[dict[str, Any]] = [{"total_tokens": 10}, {"reported_cost": "1"}]
    assert run_case(case(records, total=None, not_flags=["implausible-price"])).differences == []


def test_a_case_that_is_not_whole_says_what_it_lacks() -> None:
    good = {"total_tokens": 10, "reported_cost": "1"}
    for broken, named in (
        (case([], total=0), "input.records"),
        (case([good], None, total=10), "highest_price_per_million_in_book"),
        (case([good], 75, total=10), "highest_price_per_million_in_book"),
        (case([{**good, "reported_cost": 1.0}], total=10), "reported_cost"),
    ):
        result = run_case(broken)
        assert result.outcome is Outcome.FAIL
        assert named in result.differences[0]
    other = run_case(case([{**good, "wording": 1}], total=10))
    assert (other.outcome, other.missing) == (Outcome.UNSUPPORTED, "needs input.records.wording")
