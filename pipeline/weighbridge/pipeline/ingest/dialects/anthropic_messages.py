"""Anthropic Messages: the input excludes cache reads and writes, the output includes thinking, there is no total.

    input 3, created 12,304 (all five-minute), read 0   ->   input_total 12,307

A stream opens with the input counts and a placeholder for the output; `message_delta` brings the output and repeats,
and so revises, any other field. A revised creation without its lifetime split makes the old split stale.

    top level 4,727 in, 3,391 out; message 1,051 / 35, advisor 2,728 / 3,880 on another model, message 3,676 / 3,356
    ->   4,727 and 3,391 are the two messages; the advisor is a child of its own

vLLM answers so too: 94 beside 256 written where prompt details are on, the whole 350 where they are off.
"""

from __future__ import annotations

from weighbridge.pipeline.ingest.dialect import (
    CACHED_BY_MODALITY,
    INPUT_BY_MODALITY,
    OUTPUT_BY_MODALITY,
    TOOL_BY_MODALITY,
    Absent,
    Dialect,
    Iterations,
    Merge,
    Role,
    Stream,
)
from weighbridge.pipeline.ingest.fact import Axis
from weighbridge.schemas.enumerations import Ended

USAGE = {
    "input_tokens": Role.INPUT,
    "output_tokens": Role.OUTPUT,
    "cache_read_input_tokens": Role.CACHE_READ,
    "cache_creation_input_tokens": Role.CACHE_WRITE,
    "cache_creation.ephemeral_5m_input_tokens": Role.CACHE_WRITE_5M,
    "cache_creation.ephemeral_1h_input_tokens": Role.CACHE_WRITE_1H,
    "output_tokens_details.thinking_tokens": Role.REASONING,
    "server_tool_use.web_search_requests": Role.EVIDENCE,
    "server_tool_use.web_fetch_requests": Role.EVIDENCE,
    "service_tier": Role.EVIDENCE,
    "inference_geo": Role.EVIDENCE,
    "speed": Role.EVIDENCE,
}
_MODALITIES = frozenset({*INPUT_BY_MODALITY, *TOOL_BY_MODALITY, *CACHED_BY_MODALITY, *OUTPUT_BY_MODALITY})
# The answer's own turns make up the top level; where another model took over, its turns alone do.
ITERATIONS = Iterations("iterations", shown=("fallback_message", "message"))

DIALECT = Dialect(
    name="anthropic_messages",
    apis=("anthropic_messages", "messages"),
    providers=("anthropic",),
    source="https://docs.anthropic.com/en/api/messages",
    containers=("usage", "message.usage"),
    roles=USAGE,
    axes={
        Axis.INPUT_INCLUDES_CACHE: (False, True),
        Axis.OUTPUT_INCLUDES_REASONING: (True, False),
    },
    absent={
        "any": Absent(zero=_MODALITIES | {Role.CACHE_READ, Role.CACHE_WRITE, Role.TOOL_PROMPT}),
        # Engines that show what they cached only where they are told to: else the input is the prompt, cached or not.
        "details_on_request": Absent(
            zero=_MODALITIES | {Role.TOOL_PROMPT},
            zero_beside={
                Role.CACHE_READ: frozenset({Role.CACHE_WRITE}),
                Role.CACHE_WRITE: frozenset({Role.CACHE_READ}),
            },
            whole=True,
        ),
    },
    stream=Stream(
        merge=Merge.START_DELTA,
        opening=frozenset({"message_start"}),
        revising=frozenset({"message_delta"}),
        closing={"message_delta": Ended.COMPLETE, "message_stop": Ended.COMPLETE},
        unclosed=Ended.CUT,
    ),
    iterations=ITERATIONS,
    open=True,
)
