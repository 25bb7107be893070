"""What engines of one's own answered, recorded beside what they did: usage as it stands, prompts counted once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from weighbridge.pipeline import UsageReading, read_usage
from weighbridge.schemas.enumerations import Verdict

pytestmark = pytest.mark.real
APIS = {
    "/v1/completions": "completions",
    "/v1/chat/completions": "chat",
    "/v1/responses": "responses",
    "/v1/messages": "messages",
}
SERVERS = {
    "vllm/a_plain/requests.jsonl": "vllm",
    "vllm/b_spec_ngram/requests.jsonl": "vllm",
    "vllm/c_reasoning_tools_small_pool/requests.jsonl": "vllm",
    "transformers/serve_requests.jsonl": "transformers",
    "llamacpp/server_requests.jsonl": "llama_cpp",
}
READ = dict(zip(SERVERS, (49, 37, 44, 18, 7), strict=True))
# The stop string was cut off: the engine computed these tokens, usage leaves them out.
TRIMMED = {"B14-stop-string": 1, "B19-stop-string": 2, "B21-stop-string-kept": 1, "B38-messages-stop": 1}
Answer = tuple[str, dict[str, Any], list[dict[str, Any]]]


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def answers(path: Path, provider: str) -> Iterator[Answer]:
    """The case, the record to read, and the usage objects of its answer in order, found without our code."""
    for call in lines(path):
        api, response = APIS.get(call["request"]["path"]), call["response"]
        if api is None or response is None:
            continue
        record: dict[str, Any] = {"provider": provider, "api": api}
        if response.get("events") is None:
            record["response"] = response["body"]
            bodies = [response["body"]]
        else:
            bodies = [event["data"] for event in response["events"] if isinstance(event.get("data"), dict)]
            record["events"] = bodies
        places = [
            place
            for body in bodies
            if isinstance(body, dict)
            for place in (body, body.get("response"), body.get("message"))
        ]
        yield (
            call["case"],
            record,
            [p["usage"] for p in places if isinstance(p, dict) and isinstance(p.get("usage"), dict)],
        )


def stated(usage: dict[str, Any]) -> tuple[int, int, int | None]:
    """Prompt, completion and cached tokens as the engine's own documentation means them, worked out by hand here."""
    details = usage.get("prompt_tokens_details") or usage.get("input_tokens_details") or {}
    if "prompt_tokens" in usage:
        return usage["prompt_tokens"], usage["completion_tokens"], details.get("cached_tokens")
    if "total_tokens" in usage:
        return usage["input_tokens"], usage["output_tokens"], details.get("cached_tokens")
    beside = usage.get("cache_read_input_tokens", 0) + usage.get("cache_creation_input_tokens", 0)
    return usage["input_tokens"] + beside, usage["output_tokens"], usage.get("cache_read_input_tokens")


@pytest.mark.parametrize("file", SERVERS)
def test_every_recorded_usage_is_proved_and_says_what_the_engine_says(file: str, shared_real: Path) -> None:
    read = 0
    for case, record, usages in answers(shared_real / "engines" / file, SERVERS[file]):
        reading = read_usage(record)
        if not usages:
            assert (reading.verdict, reading.total) == (Verdict.UNKNOWN, None), case
            continue
        prompt, completion, cached = stated(usages[-1])
        assert reading.verdict is Verdict.PROVED, case
        assert (reading.input_total, reading.output_total) == (prompt, completion), case
        assert reading.counts["cache_read"] == cached, case
        assert (reading.counts["input_uncached"] is None) is (cached is None), case
        details = usages[-1].get("completion_tokens_details") or usages[-1].get("output_tokens_details") or {}
        # Where nothing was answered, nothing was reasoned.
        assert reading.counts["reasoning"] == (details.get("reasoning_tokens") if completion else 0), case
        assert not set(reading.flags) & {"provider_not_known", "unmapped_leaves", "convention_refuted"}, case
        read += 1
    assert read == READ[file]


def of_vllm(folder: Path) -> Iterator[tuple[dict[str, Any], dict[str, Any], UsageReading]]:
    """Per vLLM call with usage and finished engine requests: what the engine did, the request, the reading."""
    for name in ("a_plain", "b_spec_ngram", "c_reasoning_tools_small_pool"):
        root = folder / "engines" / "vllm" / name
        asked = {call["case"]: call["request"].get("body") for call in lines(root / "requests.jsonl")}
        readings = {case: read_usage(record) for case, record, _ in answers(root / "requests.jsonl", "vllm")}
        for outcome in lines(root / "outcomes.jsonl"):
            if outcome.get("usage") and outcome.get("engine_finished"):
                case = outcome["case"]
                yield outcome, asked[case], readings[case]


def test_choices_and_beams_are_answered_from_one_prompt(shared_real: Path) -> None:
    """The engine works on n prompts, usage counts one; a list of prompts is counted as many times as it is long."""
    several: dict[str, tuple[int, int]] = {}
    for outcome, asked, reading in of_vllm(shared_real):
        engine, case = outcome["engine_finished"], outcome["case"]
        prompts = asked.get("prompt")
        listed = len(prompts) if isinstance(prompts, list) and isinstance(prompts[0], str) else 1
        n = asked.get("n", 1)
        if asked.get("use_beam_search"):
            # Each step of each beam is an engine request of its own; usage counts one prompt and the beams it returns.
            assert engine["records"] > n
            assert (reading.input_total, reading.output_total) == (40, n * asked["max_tokens"]), case
            continue
        assert engine["records"] == n * listed, case
        assert reading.input_total is not None
        assert engine["prompt_tokens"] == n * reading.input_total, case
        if reading.counts["cache_read"] is not None:
            assert engine["cached_tokens"] == n * reading.counts["cache_read"], case
        assert reading.output_total == engine["generation_tokens"] - TRIMMED.get(case, 0), case
        if n > 1:
            several[case] = (reading.input_total, engine["prompt_tokens"])
    assert several == {
        "A13-n3": (401, 1203),
        "A92-stop-n3": (6, 18),
        "B58-stop-string-walk-n2": (2, 4),
        "B60-stop-string-walk-n2": (2, 4),
    }


def test_cached_tokens_that_are_not_shown_are_unknown_and_the_prompt_stays_whole(shared_real: Path) -> None:
    """Messages leave cached tokens out of the input only where the server shows them: 94 + 256 = 350, or 350."""
    root = shared_real / "engines" / "vllm"
    shown = {case: read_usage(r) for case, r, _ in answers(root / "a_plain" / "requests.jsonl", "vllm")}
    hidden = {
        case: read_usage(r) for case, r, _ in answers(root / "c_reasoning_tools_small_pool" / "requests.jsonl", "vllm")
    }
    on, off = shown["A61-messages-stream"], hidden["C23-messages-cached"]
    assert (on.input_total, on.counts["input_uncached"], on.counts["cache_write_unknown"]) == (350, 94, 256)
    assert (off.input_total, off.counts["input_uncached"], off.counts["cache_read"]) == (350, None, None)
    assert "cache_detail_missing" in off.flags


def test_calls_of_llama_cpp_in_process_count_what_was_tokenised(shared_real: Path) -> None:
    """Its usage counts prompt and answer, not what of them was computed anew; the end token is in neither."""
    read = 0
    for call in lines(shared_real / "engines" / "llamacpp" / "calls.jsonl"):
        body = call["response"]
        if not isinstance(body, dict) or not body.get("usage"):
            continue
        reading = read_usage({"provider": "llama_cpp", "api": "completions", "response": body})
        assert reading.verdict is Verdict.PROVED, call["case"]
        assert reading.input_total == body["usage"]["prompt_tokens"], call["case"]
        assert reading.output_total == body["usage"]["completion_tokens"], call["case"]
        assert reading.counts["cache_read"] is None, call["case"]
        read += 1
    assert read == 23
