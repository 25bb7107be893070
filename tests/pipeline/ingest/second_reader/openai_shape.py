"""OpenAI's shape, spoken by half the market: details lie inside what they detail, unless the total says otherwise."""

from __future__ import annotations

from typing import Any

from tests.pipeline.ingest.second_reader.meaning import Convention, Told

Usage = dict[str, Any]
_ENDS = ("response.completed", "response.incomplete", "response.failed")
# Who gives the details wherever there is something to give; all others may hide what they cached and thought.
_SHOWING = {
    "openai": {"openai_chat", "openai_responses", "openai_completions", "openai_assistants"},
    "deepseek": {"openai_chat", "openai_responses"},
    "groq": {"openai_chat"},
    "mistral": {"openai_chat"},
    "writer": {"other:/v1/chat", "openai_completions"},
}
_INPUT = ("prompt_tokens_details", "prompt_token_details", "input_tokens_details")
_OUTPUT = ("completion_tokens_details", "completion_token_details", "output_tokens_details")


def calls(record: dict[str, Any]) -> list[Usage | None]:
    """The final usage of each call of a record, null where a call has none."""
    response = record["response"]
    if isinstance(response, dict):
        return [response.get("usage")]
    events = [event for event in response if isinstance(event, dict)]
    closed: list[Usage | None] = [e["response"].get("usage") for e in events if e.get("type") in _ENDS]
    if closed:
        return closed
    told = [event.get("usage") or (event.get("x_groq") or {}).get("usage") for event in events]
    return [next((usage for usage in reversed(told) if usage), None)]


def told(record: dict[str, Any], usage: Usage) -> Told:
    """The numbers of one usage object."""
    provider, api = record["provider"], record["api_flavor"]
    beside = provider == "google" or (provider == "xai" and api == "openai_chat")
    embedding = api == "embeddings"
    shown = api == "other:/v1/responses/compact" or api in _SHOWING.get(provider, ())
    incoming: Usage = next((usage[name] for name in _INPUT if usage.get(name)), {})
    outgoing: Usage = next((usage[name] for name in _OUTPUT if usage.get(name)), {})
    read = same(
        incoming.get("cached_tokens"),
        usage.get("cached_tokens"),
        usage.get("num_cached_tokens"),
        usage.get("prompt_cache_hit_tokens"),
    )
    written = same(incoming.get("cache_write_tokens"))
    thought = same(outgoing.get("reasoning_tokens"), usage.get("reasoning_tokens"))
    if shown or provider == "google" or (embedding and provider in {"openai", "azure", "mistral"}):
        read = read or 0
    if shown or embedding:
        thought = thought or 0
    return Told(
        prompt=same(usage.get("prompt_tokens"), usage.get("input_tokens")),
        answer=0 if embedding else same(usage.get("completion_tokens"), usage.get("output_tokens")),
        total=usage.get("total_tokens"),
        read=read,
        written=written if written is not None or read is None else 0,
        thought=thought,
        fresh=usage.get("prompt_cache_miss_tokens"),
        documented=Convention(thought_inside=not beside),
    )


def same(*spellings: int | None) -> int | None:
    """The one number that several fields for it agree on, null where none of them is there."""
    found = {count for count in spellings if count is not None}
    assert len(found) <= 1
    return found.pop() if found else None
