"""Anthropic's shape: what was cached stands beside the input, thinking inside the output; there is no total."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.pipeline.ingest.second_reader.meaning import Convention, Told

Usage = dict[str, Any]


def calls(record: dict[str, Any]) -> list[Usage | None]:
    """The final usage of each call of a record, null where a call has none."""
    response = record["response"]
    if isinstance(response, dict):
        return [response.get("usage")]
    return list(revised([event for event in response if isinstance(event, dict)]))


def revised(events: list[dict[str, Any]]) -> Iterator[Usage | None]:
    """What each message said when it opened, revised field by field; its first output is a placeholder."""
    current: Usage | None = None
    for event in events:
        if event.get("type") == "message_start":
            if current is not None:
                yield current
            current = {name: value for name, value in event["message"]["usage"].items() if name != "output_tokens"}
        elif event.get("type") == "message_delta" and current is not None:
            current.update({name: value for name, value in event["usage"].items() if value is not None})
    yield current


def told(record: dict[str, Any], usage: Usage) -> Told:
    """The numbers of one usage object."""
    return Told(
        prompt=usage["input_tokens"],
        answer=usage.get("output_tokens"),
        read=usage.get("cache_read_input_tokens") or 0,
        written=usage.get("cache_creation_input_tokens") or 0,
        thought=(usage.get("output_tokens_details") or {}).get("thinking_tokens"),
        documented=Convention(cache_inside=False),
    )
