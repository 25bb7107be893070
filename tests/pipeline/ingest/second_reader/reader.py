"""Which shape an answer has, and what the second reader makes of it."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from tests.pipeline.ingest.second_reader import anthropic_shape, bedrock_shape, google_shape, openai_shape, small_shapes
from tests.pipeline.ingest.second_reader.meaning import Meaning, Told, meanings

Record = dict[str, Any]
Usage = dict[str, Any]


class Shape(NamedTuple):
    """How answers of one shape are read: the usage of each call, then what its numbers are."""

    calls: Callable[[Record], list[Usage | None]]
    told: Callable[[Record, Usage], Told]
    also_told: Callable[[Record, Usage], Told] | None = None


OPENAI = Shape(openai_shape.calls, openai_shape.told)
ANTHROPIC = Shape(anthropic_shape.calls, anthropic_shape.told)
GOOGLE = Shape(google_shape.calls, google_shape.told)
BEDROCK = Shape(bedrock_shape.calls, bedrock_shape.told, bedrock_shape.also_told)
COHERE = Shape(small_shapes.cohere_calls, small_shapes.cohere_told)
VOYAGE = Shape(small_shapes.voyage_calls, small_shapes.voyage_told)
OLLAMA = Shape(small_shapes.ollama_calls, small_shapes.ollama_told, small_shapes.ollama_also_told)
BY_API = {
    "openai_chat": OPENAI,
    "openai_responses": OPENAI,
    "openai_completions": OPENAI,
    "openai_assistants": OPENAI,
    "other:/v1/responses/compact": OPENAI,
    "other:/v1/chat": OPENAI,
    "anthropic_messages": ANTHROPIC,
    "gemini_generate_content": GOOGLE,
    "gemini_interactions": GOOGLE,
    "vertex_predict": GOOGLE,
    "other:/v1beta/cachedContents": GOOGLE,
    "bedrock_converse": BEDROCK,
    "bedrock_invoke_model": BEDROCK,
    "cohere_v1_chat": COHERE,
    "cohere_v2_chat": COHERE,
    "generate": COHERE,
    "rerank": COHERE,
    "ollama_chat": OLLAMA,
    "ollama_generate": OLLAMA,
}
BY_PROVIDER = {"cohere": COHERE, "voyage": VOYAGE, "google": GOOGLE, "vertex": GOOGLE, "ollama": OLLAMA}
# Counts of tokens that are not called so.
NAMED = ("input", "output", "read", "written", "prompt_eval_count", "eval_count")
# A prompt that is counted is not served, and units of a vector store are no tokens.
NO_USAGE = ("count_tokens", "other:/query")


def shape_of(record: Record) -> Shape:
    """How this answer is read."""
    api, provider = record["api_flavor"], record["provider"]
    if api in {"embeddings", "rerank"}:
        return BY_PROVIDER.get(provider, OPENAI)
    return BY_API[api]


def has_tokens(usage: Usage | None) -> bool:
    """Whether a usage object has a count of tokens at all; search units, guardrail units and seconds are none."""
    if not usage:
        return False
    numbers = {**usage, **usage.get("service", {})}
    return any(("oken" in name or name in NAMED) and isinstance(count, int | float) for name, count in numbers.items())


def understood(record: Record, usage: Usage) -> tuple[Meaning | None, set[Meaning]]:
    """The documented meaning, null where the numbers refute it, and every possible one."""
    shape = shape_of(record)
    documented, possible = meanings(shape.told(record, usage))
    if shape.also_told is not None:
        possible = possible | meanings(shape.also_told(record, usage))[1]
    return documented, possible


@cache
def answers(folder: Path) -> tuple[Record, ...]:
    """All recorded answers."""
    with gzip.open(folder / "api_responses_all.jsonl.gz", "rt", encoding="utf-8") as lines:
        return tuple(map(json.loads, lines))
