"""Bedrock: Converse counts all four classes side by side; InvokeModel hands on each vendor's own body.

The service counts once more, in headers or at the end of a stream: where it says another number than the model's own
usage, both meanings are possible.
"""

from __future__ import annotations

from typing import Any

from tests.pipeline.ingest.second_reader import anthropic_shape
from tests.pipeline.ingest.second_reader.meaning import BOTH, Convention, Told

Usage = dict[str, Any]
_BESIDE = Convention(cache_inside=False)
# OpenAI's models in streams: the whole input, and a total that counts what was cached once more.
_TWICE = Convention(cache_twice=True)
_HEADERS = {
    "input": "x-amzn-bedrock-input-token-count",
    "output": "x-amzn-bedrock-output-token-count",
    "read": "x-amzn-bedrock-cache-read-input-token-count",
    "written": "x-amzn-bedrock-cache-write-input-token-count",
}
_METRICS = {
    "input": "inputTokenCount",
    "output": "outputTokenCount",
    "read": "cacheReadInputTokenCount",
    "written": "cacheWriteInputTokenCount",
}
# Every vendor's spellings of each number, in the bodies that were recorded.
_SPELLINGS = {
    "input": ("input_tokens", "inputTokens", "prompt_tokens", "prompt_token_count", "inputTextTokenCount"),
    "output": (
        "output_tokens",
        "outputTokens",
        "completion_tokens",
        "generation_token_count",
        "totalOutputTextTokenCount",
        "tokenCount",
    ),
    "total": ("totalTokens", "total_tokens"),
    "read": ("cache_read_input_tokens", "cacheReadInputTokens", "cacheReadInputTokenCount"),
    "written": ("cache_creation_input_tokens", "cacheWriteInputTokens", "cacheWriteInputTokenCount"),
}


def calls(record: dict[str, Any]) -> list[Usage | None]:
    """The numbers of a record under our own names, the service's ones as `service`; null where there are none."""
    response = record["response"]
    events = [event for event in (response if isinstance(response, list) else [response]) if isinstance(event, dict)]
    own: Usage = {}
    service: Usage = {}
    for event in events:
        own |= _own(event)
        service |= _named(event.get("amazon-bedrock-invocationMetrics") or {}, _METRICS)
    if any(event.get("type") == "message_start" for event in events):
        (usage,) = anthropic_shape.revised(events)
        own = _own({"usage": usage})
    service |= _named(record["meta_headers"], _HEADERS)
    return [{**own, "service": service}] if own or service else [None]


def _own(event: dict[str, Any]) -> Usage:
    usage = event.get("usage") or (event.get("metadata") or {}).get("usage") or {}
    results = event.get("results") or [{}]
    places = (event, results[0] if isinstance(results[0], dict) else {}, usage)
    found: Usage = {}
    for place in places:
        for name, spellings in _SPELLINGS.items():
            told = {int(place[one]) for one in spellings if place.get(one) is not None}
            assert len(told) <= 1
            found |= dict.fromkeys([name], next(iter(told))) if told else {}
    thinking = (usage.get("output_tokens_details") or {}).get("thinking_tokens")
    return found if thinking is None else {**found, "thought": thinking}


def _named(place: dict[str, Any], names: dict[str, str]) -> Usage:
    return {name: int(place[spelling]) for name, spelling in names.items() if place.get(spelling) is not None}


def told(record: dict[str, Any], usage: Usage) -> Told:
    """The numbers of one answer; the service's where the model says nothing."""
    return _told(record, {**usage["service"], **{name: count for name, count in usage.items() if name != "service"}})


def also_told(record: dict[str, Any], usage: Usage) -> Told:
    """The same answer by the service's count, the model's where the service says nothing."""
    service = usage["service"]
    kept = {name: count for name, count in usage.items() if name != "service"}
    if any(service.get(name, count) != count for name, count in kept.items()):
        kept.pop("total", None)  # the total is the model's own
    return _told(record, {**kept, **service})


def _told(record: dict[str, Any], usage: Usage) -> Told:
    model = str(record["model"])
    vector = record["api_flavor"] == "bedrock_invoke_model" and "embed" in model
    doubles = record["api_flavor"] == "bedrock_converse" and "openai." in model
    return Told(
        prompt=usage.get("input"),
        answer=0 if vector else usage.get("output"),
        total=usage.get("total"),
        read=usage.get("read", 0),
        written=usage.get("written", 0),
        thought=0 if vector else usage.get("thought"),
        documented=_TWICE if doubles else _BESIDE,
        thoughts=(True,),
        twice=BOTH if doubles else (False,),
    )
