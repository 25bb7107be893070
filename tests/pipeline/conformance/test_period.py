"""Cases of days and months in a billing zone."""

from __future__ import annotations

from typing import Any

import pytest

from weighbridge.pipeline.conformance.run import Outcome, run_case

GIVEN: dict[str, Any] = {
    "provider": "openai",
    "api": "chat",
    "timezone": "Asia/Tokyo",
    "records": [
        {"time": "2026-05-31T14:59:59Z", "cost": "1", "calls": 2},
        {"time": "2026-05-31T15:00:00Z", "cost": "2"},
    ],
    "context": {"range": ["2026-06-01", "2026-06-02"]},
}


def case(expect: dict[str, Any], **given: Any) -> dict[str, Any]:
    return {"id": "T", "kind": "period", "input": GIVEN | given, "expect": expect}


def test_a_case_passes_where_all_of_it_is_so() -> None:
    expect = {
        "day": ["2026-05-31", "2026-06-01"],
        "period": ["2026-05", "2026-06"],
        "day_cost": {"2026-05-31": "1", "2026-06-02": "0"},
        "day_calls": {"2026-05-31": 2},
        "range_cost": "2",
        "range_calls": 1,
    }
    assert run_case(case(expect)).outcome is Outcome.PASS


@pytest.mark.parametrize(
    ("expect", "told"),
    [
        ({"day": ["2026-05-31", "2026-05-31"]}, "place 2"),
        ({"day": ["2026-05-31"]}, "2 records, 1 expected"),
        ({"period": ["2026-06", "2026-06"]}, "place 1"),
        ({"day_cost": {"2026-05-31": "3"}}, "day_cost.2026-05-31"),
        ({"range_cost": "3"}, "range_cost"),
        ({"range_calls": 2}, "range_calls"),
    ],
)
def test_a_difference_is_told_by_place_and_figure(expect: dict[str, Any], told: str) -> None:
    result = run_case(case(expect))
    assert result.outcome is Outcome.FAIL
    assert told in result.differences[0]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"timezone": "Mars/Olympus"}, "timezone"),
        ({"records": []}, "records"),
        ({"records": [{"time": "yesterday"}]}, "time"),
        ({"context": {"range": ["2026-06-01"]}}, "range"),
    ],
)
def test_what_cannot_be_read_is_told_by_its_field(given: dict[str, Any], told: str) -> None:
    result = run_case(case({"range_cost": "2"}, **given))
    assert result.outcome is Outcome.FAIL
    assert told in result.differences[0]
    assert "yesterday" not in result.differences[0]


def test_a_field_that_nothing_reads_makes_the_case_unsupported() -> None:
    records = [{"time": "2026-05-31T15:00:00Z", "weather": 1}]
    assert run_case(case({"range_cost": "2"}, records=records)).missing == "needs input.records.weather"
