"""Cases of duplicates run through importer and lake: each assertion can fail, a malformed case says what is wrong."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from weighbridge.pipeline.conformance import Outcome, run_case, run_file


def spans(**expect: object) -> dict[str, Any]:
    """An agent of 30 tokens around two calls of 12 and 18."""
    record = {"request_id": "t", "start": 0, "end": 9}
    records = [
        {**record, "span_id": "p", "parent_span_id": None, "operation": "invoke_agent", "usage": usage(20, 10)},
        {**record, "span_id": "a", "parent_span_id": "p", "operation": "chat", "usage": usage(8, 4)},
        {**record, "span_id": "b", "parent_span_id": "p", "operation": "chat", "usage": usage(12, 6)},
    ]
    return case("otel_spans", records, expect)


def gateway(**expect: object) -> dict[str, Any]:
    """A request of two tries, of which the first was turned away."""
    records = [
        {"request_id": "r", "attempt_id": "a1", "status": 429, "usage": None},
        {"request_id": "r", "attempt_id": "a2", "status": 200, "usage": {"prompt_tokens": 7, "completion_tokens": 2}},
    ]
    return case("gateway_log", records, expect)


def usage(inputs: int, outputs: int) -> dict[str, int]:
    return {"input_tokens": inputs, "output_tokens": outputs}


def case(api: str, records: list[dict[str, object]], expect: dict[str, object]) -> dict[str, Any]:
    given = {"provider": "openai", "api": api, "model": "m", "records": records}
    return {"id": "D1", "kind": "dedup", "input": given, "expect": expect}


GOOD = [
    spans(kept=2, requests=2, attempts=2, failed=0, input_total=20, output_total=10, total=30, flags=[]),
    gateway(kept=2, requests=1, attempts=2, failed=1, input_total=7, output_total=2, total=9, counts={"cache_read": 0}),
]


@pytest.mark.parametrize("good", GOOD, ids=["spans", "gateway"])
def test_a_case_passes_and_fails_for_each_number_that_is_wrong(good: dict[str, Any]) -> None:
    assert run_case(good).differences == []
    wrong = copy.deepcopy(good)
    numbers = [name for name, value in good["expect"].items() if isinstance(value, int)]
    for name in numbers:
        wrong["expect"][name] += 1
    result = run_case(wrong)
    assert result.outcome is Outcome.FAIL
    assert [difference.split(":")[0] for difference in result.differences] == numbers


def test_tries_without_an_id_of_their_own_are_still_told_apart() -> None:
    told = gateway(kept=2, requests=1, failed=1)
    for record in told["input"]["records"]:
        del record["attempt_id"]
    assert run_case(told).differences == []


def test_a_record_that_cannot_be_read_fails_the_case() -> None:
    told = gateway(kept=2)
    told["input"]["records"][1]["usage"]["prompt_tokens"] = "seven"
    assert run_case(told).differences == ["records: 1 cannot be read", "kept: expected 2, found 1"]


def test_fields_that_nothing_reads_make_a_case_unsupported() -> None:
    told = gateway(kept=2)
    told["input"]["records"][0]["shard"] = 3
    assert run_case(told).missing == "needs input.records.shard"
    assert run_case(gateway(kept=2, median=1)).missing == "needs expect.median"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"records": []}, "input.records is missing, or not alone"),
        ({"records": [1]}, "input.records is a int; an object is expected"),
        ({"usage": {}}, "input.records is missing, or not alone"),
    ],
)
def test_malformed_cases_say_what_is_wrong(change: dict[str, object], said: str) -> None:
    told = gateway(kept=2)
    told["input"] |= change
    (difference,) = run_case(told).differences
    assert said in difference


def test_a_name_no_span_has_is_an_error_of_the_case() -> None:
    told = spans(kept=2)
    told["input"]["records"][0]["usage"] = {"tokens": 1}
    (difference,) = run_case(told).differences
    assert "input.records.usage has a name that is none of input_tokens" in difference


@pytest.mark.real
def test_every_shared_case_of_this_kind_passes(shared_real: Path) -> None:
    results = {result.id: result for result in run_file(shared_real / "bug_cases.jsonl")}
    of_kind = {name: results[name] for name in ("B47", "B49", "B63", "B89", "B91", "B93", "B95")}
    assert {name: (result.outcome, result.differences) for name, result in of_kind.items()} == dict.fromkeys(
        of_kind, (Outcome.PASS, [])
    )
