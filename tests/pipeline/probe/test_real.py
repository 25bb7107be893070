"""Recorded answers and counters of vLLM, judged as a probe would judge them: what agrees, and what does not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from weighbridge.pipeline.probe.answer import delivered
from weighbridge.pipeline.probe.api import Api, all_apis
from weighbridge.pipeline.probe.endpoint import Answered
from weighbridge.pipeline.probe.engine_counts import EngineCount, between, counters
from weighbridge.pipeline.probe.judge import judge
from weighbridge.pipeline.probe.observation import Observation
from weighbridge.pipeline.probe.prompts import prompts
from weighbridge.pipeline.probe.step import Step, all_steps
from weighbridge.pipeline.probe.usage import reported

pytestmark = pytest.mark.real

FOLDERS = ("a_plain", "b_spec_ngram", "c_reasoning_tools_small_pool")
# Where usage and engine part: what usage says less what the engine counted, read off the recordings.
PARTED = {
    "A13-n3": [("input", "parallel_choices", 401 - 1203)],
    "A92-stop-n3": [("input", "parallel_choices", 6 - 18)],
    # max_tokens 0 with echo: usage says 1, and the engine, asked for none, had to compute it.
    "B13-echo-0": [("output", "over_cap", 1)],
    "B14-stop-string": [("output", "stop_trimmed", 3 - 4)],
    "B19-stop-string": [("output", "stop_trimmed", 7 - 9)],
    "B21-stop-string-kept": [("output", "stop_trimmed", 3 - 4)],
    "B38-messages-stop": [("output", "stop_trimmed", 3 - 4)],
    "B58-stop-string-walk-n2": [("input", "parallel_choices", 2 - 4)],
    "B60-stop-string-walk-n2": [("input", "parallel_choices", 2 - 4)],
}


def _lines(path: Path) -> list[dict[str, Any]]:
    # Request bodies that are no JSON, and what was sent for a failure's sake, stand as text.
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _api(path: str) -> Api | None:
    return next((api for api in all_apis().values() if path == "/v1" + api.path), None)


def _step(body: dict[str, Any]) -> Step:
    if body.get("n", 1) > 1:
        return all_steps()["choices"]
    asks = body.get("stop") or body.get("stop_sequences")
    return all_steps()["stop_string" if asks else "plain"]


def _observed(call: dict[str, Any], outcome: dict[str, Any]) -> Observation | None:
    """A call that was answered whole and finished at the engine, one prompt of it."""
    api, body, finished = _api(call["request"]["path"]), call["request"]["body"], outcome["engine_finished"]
    if api is None or finished is None or outcome["status"] != 200 or outcome["aborted"]:
        return None
    if not isinstance(body, dict) or body.get("use_beam_search") or finished["records"] != body.get("n", 1):
        return None
    answer = call["response"]
    streamed = answer.get("events")
    events = None if streamed is None else tuple(_data(event["data"]) for event in streamed)
    answered = Answered(None if streamed else answer["body"], events, {})
    step = _step(body)
    limit = next((body[n] for n in ("max_tokens", "max_completion_tokens", "max_output_tokens") if n in body), 10**6)
    return Observation(
        step=step,
        usage=reported(answered, "vllm", api.dialect, "m"),
        prompt=None,
        answer=delivered(answered, api, step.ask(prompts()), limit, None),
        engine=EngineCount(finished["prompt_tokens"], None, finished["generation_tokens"], finished["records"]),
        unasked=bool(streamed) and outcome["usage"] is None,
    )


def _data(text: Any) -> Any:
    return text if not isinstance(text, str) or text == "[DONE]" else json.loads(text)


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_real_servers_usage_and_engine_agree_but_where_they_are_known_to_part(shared_real: Path, folder: str) -> None:
    base = shared_real / "engines" / "vllm" / folder
    calls = {call["case"]: call for call in _lines(base / "requests.jsonl")}
    judged: dict[str, list[tuple[str, str, int | None]]] = {}
    for outcome in _lines(base / "outcomes.jsonl"):
        one = _observed(calls[outcome["case"]], outcome)
        if one is not None:
            found = judge([one])
            assert {str(p.severity) for p in found if p.cause.code != "over_cap"} <= {"notice"}, outcome["case"]
            judged[outcome["case"]] = [(str(p.direction), p.cause.code, p.difference) for p in found]
    assert len(judged) > 20
    assert {case: found for case, found in judged.items() if found} == {
        case: found for case, found in PARTED.items() if case[0] == folder[0].upper()
    }


@pytest.mark.parametrize("folder", FOLDERS)
def test_differences_of_real_counters_are_those_of_the_recording(shared_real: Path, folder: str) -> None:
    base = shared_real / "engines" / "vllm" / folder
    groups = _lines(base / "group_totals.jsonl")
    assert groups
    for group in groups:
        before, after = ((base / group[name]).read_text("utf-8") for name in ("scrape_before", "scrape_after"))
        moved, told = between(counters(before, "m"), counters(after, "m")), group["counters"]
        expected = (told["prompt_tokens_total"], told["generation_tokens_total"], told["request_success_total"])
        assert moved is not None
        assert (moved.input, moved.output, moved.requests) == expected, group["group"]
