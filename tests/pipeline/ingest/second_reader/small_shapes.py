"""Shapes with few numbers: Cohere, Voyage, Ollama."""

from __future__ import annotations

from typing import Any

from tests.pipeline.ingest.second_reader.meaning import Told

Usage = dict[str, Any]


def cohere_calls(record: dict[str, Any]) -> list[Usage | None]:
    """What is billed, in tokens; what was processed stands beside it and is not billed."""
    response = record["response"]
    found = None
    for event in response if isinstance(response, list) else [response]:
        if not isinstance(event, dict):
            continue
        inner, delta = event.get("response") or {}, event.get("delta") or {}
        for place in (event.get("usage"), event.get("meta"), delta.get("usage"), inner.get("meta")):
            found = (place or {}).get("billed_units") or found
    return [found]


def cohere_told(record: dict[str, Any], usage: Usage) -> Told:
    """The numbers of billed units. Image tokens are input of their own kind, and vectors are not made of tokens."""
    vector = record["api_flavor"] == "embeddings"
    prompt = int(usage.get("input_tokens", 0)) + int(usage.get("image_tokens", 0))
    answer = 0 if vector else int(usage["output_tokens"])
    return Told(prompt, answer, thought=0 if vector else None, thoughts=(True,))


def voyage_calls(record: dict[str, Any]) -> list[Usage | None]:
    """Its one usage object."""
    return [record["response"].get("usage")]


def voyage_told(record: dict[str, Any], usage: Usage) -> Told:
    """One total, all of it input."""
    return Told(usage["total_tokens"], 0, usage["total_tokens"], thought=0)


def ollama_calls(record: dict[str, Any]) -> list[Usage | None]:
    """The counts of the last event that has any."""
    response = record["response"]
    events = [event for event in (response if isinstance(response, list) else [response]) if isinstance(event, dict)]
    found = [event for event in events if "eval_count" in event]
    return [{name: found[-1].get(name) for name in ("prompt_eval_count", "eval_count")} if found else None]


def ollama_told(record: dict[str, Any], usage: Usage) -> Told:
    """The whole prompt by today's server; how much of it was cached is not said."""
    return Told(usage["prompt_eval_count"], usage["eval_count"], read=None, thoughts=(True,))


def ollama_also_told(record: dict[str, Any], usage: Usage) -> Told:
    """Only what was new of the prompt by an older server: how long the prompt was is not said."""
    return Told(None, usage["eval_count"], read=None, thoughts=(True,))
