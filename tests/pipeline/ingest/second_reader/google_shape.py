"""Google's shapes: zeros are left out, thoughts and the prompts of tools stand beside what they belong to."""

from __future__ import annotations

from typing import Any

from tests.pipeline.ingest.second_reader.meaning import BOTH, Convention, Told

Usage = dict[str, Any]
_BESIDE = Convention(thought_inside=False)


def calls(record: dict[str, Any]) -> list[Usage | None]:
    """The final usage of each call of a record, null where a call has none."""
    response = record["response"]
    events = response if isinstance(response, list) else [response]
    found = [usage for event in events if isinstance(event, dict) and (usage := _usage(event))]
    return [found[-1] if found else None]


def _usage(event: dict[str, Any]) -> Usage | None:
    interaction = event.get("interaction") or {}
    rows = [one["embeddings"].get("statistics") or {} for one in event.get("predictions", []) if "embeddings" in one]
    rows = [row for row in rows if "token_count" in row]
    embedded = {"promptTokenCount": int(sum(row["token_count"] for row in rows))} if rows else None
    return event.get("usageMetadata") or event.get("usage") or interaction.get("usage") or embedded


def told(record: dict[str, Any], usage: Usage) -> Told:
    """The numbers of one usage object."""
    api = record["api_flavor"]
    if api == "other:/v1beta/cachedContents":  # all of it went into the cache
        return Told(0, 0, read=0, written=usage["totalTokenCount"], thought=0, cache=(False,), documented=_FILLED)
    if api in {"embeddings", "vertex_predict"}:
        return Told(usage.get("promptTokenCount", 0), 0, usage.get("totalTokenCount"), thought=0)
    if api == "gemini_interactions":
        parts = ("input", "output", "cached", "thought", "tool_use")
        prompt, answer, read, thought, tool = (usage.get(f"total_{part}_tokens", 0) for part in parts)
        total = usage["total_tokens"]
    else:
        names = ("promptTokenCount", "cachedContentTokenCount", "thoughtsTokenCount", "toolUsePromptTokenCount")
        prompt, read, thought, tool = (usage.get(name, 0) for name in names)
        answer = usage.get("candidatesTokenCount") or usage.get("responseTokenCount") or 0
        total = usage["totalTokenCount"]
    return Told(prompt, answer, total, read=read, thought=thought, tool=tool, documented=_BESIDE, tools=BOTH)


_FILLED = Convention(cache_inside=False)
