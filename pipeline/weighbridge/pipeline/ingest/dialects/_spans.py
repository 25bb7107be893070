"""What the attribute names of spans have in common: nobody has to show the details, and emitters break conventions.

A span that shows no cache reads may have had some: what is left out is unknown. Where one of the two cache figures is
there, the emitter shows cache details, and the other one is left out where it is zero. A total that is the mere sum of
input and output may be the emitter's own (`_logs`), and settles nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

from weighbridge.pipeline.ingest.dialect import (
    CACHED_BY_MODALITY,
    INPUT_BY_MODALITY,
    OUTPUT_BY_MODALITY,
    TOOL_BY_MODALITY,
    Absent,
    Role,
)
from weighbridge.pipeline.ingest.dialects._logs import SUMMED_TOTAL
from weighbridge.pipeline.ingest.fact import Axis

# The conventions ask for the whole input and the whole output; what an emitter passes on of its provider may differ.
GROSS: Mapping[Axis, tuple[bool, ...]] = {
    Axis.INPUT_INCLUDES_CACHE: (True, False),
    Axis.OUTPUT_INCLUDES_REASONING: (True, False),
}
NET: Mapping[Axis, tuple[bool, ...]] = {
    Axis.INPUT_INCLUDES_CACHE: (False, True),
    Axis.OUTPUT_INCLUDES_REASONING: (True, False),
}
# Where a span shows nothing of the cache, whether its input holds what was cached is only the convention's word.
GUESSED = frozenset({Axis.INPUT_INCLUDES_CACHE})
_NEVER = frozenset({Role.TOOL_PROMPT, *TOOL_BY_MODALITY})
_SHOWS_CACHE = frozenset({Role.CACHE_READ, Role.CACHE_WRITE})
ABSENT: Mapping[str, Absent] = {
    "any": Absent(
        zero=_NEVER,
        zero_beside={
            Role.CACHE_READ: frozenset({Role.CACHE_WRITE}),
            Role.CACHE_WRITE: frozenset({Role.CACHE_READ}),
            **dict.fromkeys((*INPUT_BY_MODALITY, *CACHED_BY_MODALITY), _SHOWS_CACHE),
            **dict.fromkeys(OUTPUT_BY_MODALITY, frozenset({Role.REASONING})),
        },
    )
}
# An embedding reads and writes nothing but its input.
ABSENT_OF_EMBEDDINGS: Mapping[str, Absent] = {
    "any": Absent(
        zero=_NEVER
        | {Role.OUTPUT, Role.REASONING, Role.CACHE_READ, Role.CACHE_WRITE}
        | set(OUTPUT_BY_MODALITY)
        | set(CACHED_BY_MODALITY)
    )
}
GEN_AI: Mapping[str, Role] = {
    # OpenTelemetry, current and deprecated
    "input_tokens": Role.INPUT,
    "output_tokens": Role.OUTPUT,
    "prompt_tokens": Role.INPUT,
    "completion_tokens": Role.OUTPUT,
    "cache_read.input_tokens": Role.CACHE_READ,
    "cache_creation.input_tokens": Role.CACHE_WRITE,
    "cache_write.input_tokens": Role.CACHE_WRITE,
    "reasoning.output_tokens": Role.REASONING,
    # OpenLLMetry
    "total_tokens": Role.TOTAL,
    SUMMED_TOTAL: Role.EVIDENCE,
    "cache_read_input_tokens": Role.CACHE_READ,
    "cache_creation_input_tokens": Role.CACHE_WRITE,
    "reasoning_tokens": Role.REASONING,
    # Sentry
    "input_tokens.cached": Role.CACHE_READ,
    "input_tokens.cache_write": Role.CACHE_WRITE,
    "output_tokens.reasoning": Role.REASONING,
    # Strands
    "cache_write_input_tokens": Role.CACHE_WRITE,
    # Pydantic AI
    "details.cache_read_tokens": Role.CACHE_READ,
    "details.cache_write_tokens": Role.CACHE_WRITE,
    "details.reasoning_tokens": Role.REASONING,
    "details.input_audio_tokens": Role.INPUT_AUDIO,
    "details.cache_audio_read_tokens": Role.CACHED_AUDIO,
    "details.output_audio_tokens": Role.OUTPUT_AUDIO,
}
OPENINFERENCE: Mapping[str, Role] = {
    "prompt": Role.INPUT,
    "completion": Role.OUTPUT,
    "total": Role.TOTAL,
    SUMMED_TOTAL: Role.EVIDENCE,
    "prompt_details.cache_read": Role.CACHE_READ,
    "prompt_details.cache_write": Role.CACHE_WRITE,
    "prompt_details.audio": Role.INPUT_AUDIO,
    "completion_details.reasoning": Role.REASONING,
    "completion_details.audio": Role.OUTPUT_AUDIO,
}
VERCEL: Mapping[str, Role] = {
    "promptTokens": Role.INPUT,
    "inputTokens": Role.INPUT,
    "tokens": Role.INPUT,
    "completionTokens": Role.OUTPUT,
    "outputTokens": Role.OUTPUT,
    "totalTokens": Role.TOTAL,
    SUMMED_TOTAL: Role.EVIDENCE,
    "reasoningTokens": Role.REASONING,
    "outputTokenDetails.reasoningTokens": Role.REASONING,
    "cachedInputTokens": Role.CACHE_READ,
    "inputTokenDetails.cacheReadTokens": Role.CACHE_READ,
    "inputTokenDetails.cacheWriteTokens": Role.CACHE_WRITE,
    "inputTokenDetails.noCacheTokens": Role.INPUT_UNCACHED,
    "outputTokenDetails.textTokens": Role.EVIDENCE,
}
