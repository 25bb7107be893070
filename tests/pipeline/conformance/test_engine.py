"""Cases of what an engine knows beside its answer: the exact count is kept, a guess is judged, a prompt completed."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from weighbridge.pipeline import read_usage
from weighbridge.pipeline.conformance import Outcome, run_case, run_file
from weighbridge.pipeline.conformance.case import Case
from weighbridge.pipeline.conformance.engine import compared_engine
from weighbridge.pipeline.conformance.malformed import MalformedCaseError

USAGE = {
    "prompt_tokens": 64,
    "completion_tokens": 3,
    "total_tokens": 67,
    "prompt_tokens_details": {"cached_tokens": 40},
}
ROUTED: dict[str, Any] = {
    "id": "E1",
    "kind": "engine",
    "input": {
        "provider": "vllm",
        "api": "chat",
        "model": "m",
        "usage": USAGE,
        "context": {"router_overlap_blocks": 3, "block_size": 16},
    },
    "expect": {"counts": {"input_uncached": 24, "cache_read": 40}, "gap": 8, "not_flags": ["cache-count-mismatch"]},
}
TIMED: dict[str, Any] = {
    "id": "E2",
    "kind": "engine",
    "input": {
        "provider": "ollama",
        "api": "chat",
        "model": "m",
        "usage": {"done": True, "prompt_eval_count": 5, "eval_count": 7},
        "engine_timings": {"cache_n": 30, "prompt_n": 5, "predicted_n": 7},
    },
    "expect": {
        "counts": {"input_uncached": 5, "cache_read": 30},
        "input_total": 35,
        "gap": 30,
        "causes": {"cache_convention": 30},
        "residual": 0,
    },
}


@pytest.mark.parametrize("good", [ROUTED, TIMED], ids=["router", "timings"])
def test_a_case_passes_and_fails_for_each_number_that_is_wrong(good: dict[str, Any]) -> None:
    assert run_case(good).outcome is Outcome.PASS, run_case(good).differences
    for name in set(good["expect"]) & {"gap", "residual", "input_total"}:
        bad = copy.deepcopy(good)
        bad["expect"][name] += 1
        assert [line.split(":")[0] for line in run_case(bad).differences] == [name]
    for name in good["expect"].get("causes", {}):
        bad = copy.deepcopy(good)
        bad["expect"]["causes"][name] += 1
        assert run_case(bad).differences == [f"causes.{name}: expected 31, found 30"]


@pytest.mark.parametrize(
    ("blocks", "size", "flagged"),
    [(2, 16, False), (3, 16, False), (1, 16, True), (4, 16, True), (3, 20, True), (0, 40, True), (1, 41, False)],
)
def test_a_guess_is_let_pass_while_it_is_less_than_a_block_off(blocks: int, size: int, flagged: bool) -> None:
    context = {"router_overlap_blocks": blocks, "block_size": size}
    reading = read_usage({"provider": "vllm", "api": "chat", "usage": USAGE, "context": context})
    assert ("cache_count_mismatch" in reading.flags) is flagged
    assert reading.counts["cache_read"] == 40


@pytest.mark.parametrize("context", [{}, {"block_size": 16}, {"router_overlap_blocks": 9}, {"block_size": 0}])
def test_half_a_guess_is_none(context: dict[str, Any]) -> None:
    known = {"provider": "vllm", "api": "chat", "usage": USAGE}
    assert read_usage({**known, "context": context}) == read_usage(known)
    for odd in (True, -1, 1.0, "3"):
        told = {"router_overlap_blocks": odd, "block_size": 16}
        assert read_usage({**known, "context": told}) == read_usage(known)


def test_what_needs_attempts_is_unsupported_and_what_is_no_object_malformed() -> None:
    counted = copy.deepcopy(ROUTED)
    counted["input"] |= {"counters_before": {}, "counters_after": {}, "records": []}
    context = "needs input.context.router_overlap_blocks; needs input.context.block_size"
    assert run_case(counted).missing == f"needs input.usage; {context}; needs expect.counts; needs expect.not_flags"
    odd = copy.deepcopy(TIMED)
    odd["input"]["engine_timings"] = 3
    with pytest.raises(MalformedCaseError, match=r"input\.engine_timings is a int; an object is expected"):
        list(compared_engine(Case.of(odd)))


@pytest.mark.real
def test_every_shared_case_that_needs_no_counters_passes(shared_real: Path) -> None:
    results = {result.id: result for result in run_file(shared_real / "bug_cases.jsonl")}
    assert {name: results[name].differences for name in ("B103", "B103b", "B105")} == {
        "B103": [],
        "B103b": [],
        "B105": [],
    }
    assert all(results[name].outcome is Outcome.PASS for name in ("B103", "B103b", "B105"))


COUNTED: dict[str, Any] = {
    "id": "E3",
    "kind": "engine",
    "input": {
        "provider": "vllm",
        "api": "metrics",
        "model": "m",
        "counters_before": {"vllm:prompt_tokens_total": 100, "vllm:request_prompt_tokens_sum": 100},
        "counters_after": {"vllm:prompt_tokens_total": 1350, "vllm:request_prompt_tokens_sum": 150},
        "records": [
            {"attempt_id": "a", "outcome": "stop", "usage": {"prompt_tokens": 50, "completion_tokens": 2}},
            {"attempt_id": "b", "outcome": "abort", "prompt_tokens": 1200, "usage": None},
        ],
    },
    "expect": {"gap": 1200, "causes": {"aborted": 1200}, "residual": 0},
}


def test_counters_beside_attempts_are_explained() -> None:
    assert run_case(COUNTED).outcome is Outcome.PASS, run_case(COUNTED).differences
    unseen = copy.deepcopy(COUNTED)
    unseen["input"]["counters_after"]["vllm:request_prompt_tokens_sum"] = 140  # ten tokens that nothing explains
    assert run_case(unseen).differences == [
        "residual: expected 0, found -10",
        "causes.aborted: expected 1200, found 1210",
    ]


def test_a_counter_that_is_not_known_is_unsupported_and_named() -> None:
    other = copy.deepcopy(COUNTED)
    other["input"]["counters_after"]["vllm:made_up_total"] = 1
    assert run_case(other).missing == "needs the counter vllm:made_up_total"
