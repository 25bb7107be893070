"""A case that cannot be run as written fails and says where; no case passes for lack of a question."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from weighbridge.pipeline.conformance import CaseResult, Outcome, run_case, run_file
from weighbridge.schemas.errors import ConfigError

CANARY = "the quick brown canary"
USAGE = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}


def case(expect: object = None, **changes: Any) -> dict[str, Any]:
    given = {"provider": "openai", "api": "chat", "model": "m", "usage": USAGE} | changes.pop("given", {})
    return {"id": "C1", "kind": "usage", "input": given, "expect": {"total": 3} if expect is None else expect} | changes


def test_a_sound_case_passes() -> None:
    assert run_case(case()) == CaseResult("C1", Outcome.PASS, [])


@pytest.mark.parametrize(
    "expect",
    [
        {"note": "nothing"},
        {"counts": {}, "flags": [], "not_flags": [], "cost_by_class": {}, "estimated": {}},
    ],
)
def test_a_case_that_asserts_nothing_fails(expect: dict[str, Any]) -> None:
    result = run_case(case(expect))
    assert result.outcome is Outcome.FAIL
    assert result.differences == ["asserts nothing: expect names no figure, verdict or flag"]


@pytest.mark.parametrize(
    ("written", "said"),
    [
        (case(id=None), "id is missing or does not match"),
        (case(id=CANARY), "id is missing or does not match"),
        (case(kind=CANARY), "kind is none of usage, stream"),
        (case(input=None), "input is missing; an object is expected"),
        (case(input=[CANARY]), "input is a list; an object is expected"),
        (case("x"), "expect is a str; an object is expected"),
        (case(given={"provider": CANARY}), "input.provider is missing or does not match"),
        (case(given={"api": None}), "input.api is missing or does not match"),
        (case(given={"events": []}), "input has usage and events; one of usage, response, events"),
        (case(given={"context": CANARY}), "input.context is a str; an object is expected"),
        (case(given={"prices": CANARY}), "input.prices is a str; an object is expected"),
        (case(given={"prices": {"input": 2.5}}), "input.prices.input is a float; a price is a decimal in quotes"),
        (case(given={"prices": {"input": CANARY}}), "input.prices.input is no plain decimal"),
        (case(given={"prices": {CANARY: "1"}}), "input.prices has a name that does not match"),
        (case({CANARY: 1}), "expect has a name that does not match"),
        (case({"total": CANARY}), "expect.total is a str; a whole number or null is expected"),
        (case({"total": 3.0}), "expect.total is a float; a whole number or null is expected"),
        (case({"total": True}), "expect.total is a bool; a whole number or null is expected"),
        (case({"counts": {CANARY: 1}}), "expect.counts has a key that is none of audio_in"),
        (case({"counts": [1]}), "expect.counts is a list; an object is expected"),
        (case({"counts": {"reasoning": "1"}}), "expect.counts.reasoning is a str; a whole number or null"),
        (case({"verdict": CANARY}), "expect.verdict is none of proved, assumed, contradictory, unknown"),
        (case({"cost": CANARY}), "expect.cost is a str; a plain decimal in quotes or null is expected"),
        (case({"cost": 0.5}), "expect.cost is a float; a plain decimal in quotes"),
        (case({"cost_by_class": {"reasoning": 1}}), "expect.cost_by_class.reasoning is a int; a plain decimal"),
        (case({"cost": "1"}, given={"model": [CANARY]}), "input.model is a list; a text or null is expected"),
        (case({"flags": CANARY}), "expect.flags is a str; a list of names is expected"),
        (case({"flags": [CANARY]}), "expect.flags has a name that does not match"),
        (case({"estimated": CANARY}), "expect.estimated is a str; an object is expected"),
    ],
)
def test_a_malformed_case_fails_with_the_field_and_without_its_text(written: dict[str, Any], said: str) -> None:
    result = run_case(written)
    assert result.outcome is Outcome.FAIL
    assert len(result.differences) == 1
    assert result.differences[0].startswith("malformed case: ")
    assert said in result.differences[0]
    assert CANARY not in str(result)


def test_a_case_without_an_answer_is_malformed() -> None:
    written = case()
    del written["input"]["usage"]
    assert run_case(written).differences == ["malformed case: input has none of usage, response, events"]


@pytest.mark.parametrize(
    ("written", "missing"),
    [
        (case(given={"api": "telepathy"}), "needs a dialect for (openai, telepathy)"),
        (case(given={"prices": {"character": "1"}}), "needs a price per character"),
        (case(given={"prices": {"smell_in": "1"}}), "needs input.prices.smell_in"),
        (case(given={"records": []}), "needs matching (records)"),
        (case({"total": 3, "residual": 0}), "needs expect.residual"),
        (case({"estimated": {"total": 3, "carbon": 1}}), "needs expect.estimated.carbon"),
    ],
)
def test_what_is_not_understood_makes_a_case_unsupported_never_passed(written: dict[str, Any], missing: str) -> None:
    assert run_case(written) == CaseResult("C1", Outcome.UNSUPPORTED, [], missing)


def test_prices_of_null_are_no_prices() -> None:
    assert run_case(case({"cost": None}, given={"prices": None})).outcome is Outcome.PASS
    assert run_case(case({"cost": "0"}, given={"prices": None})).differences == ["cost: expected 0, found null"]


def test_a_difference_names_both_figures() -> None:
    result = run_case(case({"total": 4, "cost": "0.000006"}, given={"prices": {"input": "1", "output": "2"}}))
    assert result.differences == ["total: expected 4, found 3", "cost: expected 0.000006, found 0.000005"]


def test_equal_amounts_may_be_written_differently() -> None:
    prices = {"input": "1.0", "output": "2"}
    assert run_case(case({"cost": "0.00000500"}, given={"prices": prices})).outcome is Outcome.PASS


def test_lines_are_named_and_one_bad_line_does_not_hide_the_others(tmp_path: Path) -> None:
    lines = [
        b"\xff\xfe broken " + CANARY.encode(),
        b"",
        json.dumps(case()).encode(),
        b'["' + CANARY.encode() + b'"]',
        json.dumps(case(id="C5", kind="x")).encode(),
        b'{"id": "C6", "id": "C7"}',
        b'{"id": "C7", "kind": "usage", "input": {"usage": {"a": NaN}}, "expect": {}}',
        b"[" * 100_000,
        b'{"id": ' + b"9" * 5000 + b"}",
    ]
    path = tmp_path / "cases.jsonl"
    path.write_bytes(b"\n".join(lines) + b"\n")
    results = run_file(path)
    assert [(result.id, result.outcome) for result in results] == [
        ("line 1", Outcome.FAIL),
        ("C1", Outcome.PASS),
        ("line 4", Outcome.FAIL),
        ("C5", Outcome.FAIL),
        ("line 6", Outcome.FAIL),
        ("line 7", Outcome.FAIL),
        ("line 8", Outcome.FAIL),
        ("line 9", Outcome.FAIL),
    ]
    assert results[0].differences == ["line 1: malformed case: is not JSON; one object a line is expected"]
    assert results[2].differences == ["line 4: malformed case: the line is a list; an object is expected"]
    assert results[3].differences[0].startswith("line 5: malformed case: kind is none of")
    assert results[4].differences == ["line 6: malformed case: names a key twice in one object"]
    assert results[5].differences == ["line 7: malformed case: holds NaN or an infinity, which is not JSON"]
    assert results[6].differences == ["line 8: malformed case: is nested too deeply"]
    assert CANARY not in str(results)


def test_no_text_of_an_answer_appears_in_a_result() -> None:
    usage = {**USAGE, CANARY: CANARY, "prompt_tokens": CANARY}
    result = run_case(case({"total": 3, "verdict": "proved"}, given={"usage": usage, "model": CANARY}))
    assert result.outcome is Outcome.FAIL
    assert result.differences == ["total: expected 3, found null", "verdict: expected PROVED, found UNKNOWN"]
    assert CANARY not in str(result)


def test_a_file_without_cases_is_an_error_and_not_a_pass(tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_text("\n\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="has no case"):
        run_file(tmp_path / "empty.jsonl")
    with pytest.raises(ConfigError, match="cannot be read"):
        run_file(tmp_path / "gone.jsonl")


def test_numbers_keep_their_digits_on_the_way_in(tmp_path: Path) -> None:
    path = tmp_path / "cases.jsonl"
    line = json.dumps(case({"total": None, "flags": ["unreadable"]}, given={"usage": "U"}))
    # As a binary number this would be 10 exactly, and would be read.
    usage = '{"prompt_tokens": 10.00000000000000000001, "completion_tokens": 0, "total_tokens": 10}'
    path.write_text(line.replace('"U"', usage), encoding="utf-8")
    assert run_file(path) == [CaseResult("C1", Outcome.PASS, [])]
