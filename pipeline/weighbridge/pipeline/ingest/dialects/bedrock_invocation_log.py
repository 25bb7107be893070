"""Bedrock's model invocation log: the counts of the log itself beside those of the body it recorded.

    input.inputTokenCount 4, input.cacheReadInputTokenCount 1,000, output.outputTokenCount 38   ->   input_total 1,004

The log counts cached tokens beside the input. Where it recorded the body, the usage in it has other names for the same
counts, and often a total: a body that says other numbers than the log makes the report contradictory, both are kept.
"""

from __future__ import annotations

from weighbridge.pipeline.ingest.dialect import (
    CACHED_BY_MODALITY,
    INPUT_BY_MODALITY,
    OUTPUT_BY_MODALITY,
    TOOL_BY_MODALITY,
    Absent,
    Dialect,
    Role,
)
from weighbridge.pipeline.ingest.fact import Axis

_BODY = {
    # Converse
    "inputTokens": Role.INPUT,
    "outputTokens": Role.OUTPUT,
    "totalTokens": Role.TOTAL,
    "cacheReadInputTokens": Role.CACHE_READ,
    "cacheWriteInputTokens": Role.CACHE_WRITE,
    # InvokeModel, Anthropic
    "input_tokens": Role.INPUT,
    "output_tokens": Role.OUTPUT,
    "cache_read_input_tokens": Role.CACHE_READ,
    "cache_creation_input_tokens": Role.CACHE_WRITE,
    "cache_creation.ephemeral_5m_input_tokens": Role.CACHE_WRITE_5M,
    "cache_creation.ephemeral_1h_input_tokens": Role.CACHE_WRITE_1H,
    # InvokeModel, models that answer in OpenAI's words
    "prompt_tokens": Role.INPUT,
    "completion_tokens": Role.OUTPUT,
    "total_tokens": Role.TOTAL,
}

DIALECT = Dialect(
    name="bedrock_invocation_log",
    apis=("bedrock_invocation_log",),
    providers=("bedrock",),
    source="https://docs.aws.amazon.com/bedrock/latest/userguide/model-invocation-logging.html",
    containers=("input", "output"),
    roles={
        "inputTokenCount": Role.INPUT,
        "cacheReadInputTokenCount": Role.CACHE_READ,
        "cacheWriteInputTokenCount": Role.CACHE_WRITE,
        "outputTokenCount": Role.OUTPUT,
        **{f"outputBodyJson.usage.{name}": role for name, role in _BODY.items()},
        # InvokeModel, Llama
        "outputBodyJson.prompt_token_count": Role.INPUT,
        "outputBodyJson.generation_token_count": Role.OUTPUT,
    },
    axes={Axis.INPUT_INCLUDES_CACHE: (False, True), Axis.OUTPUT_INCLUDES_REASONING: (True,)},
    absent={
        # The cache fields came into the log together with the cache; what a model reasons it does not show.
        "any": Absent(
            zero=frozenset(
                {
                    Role.CACHE_READ,
                    Role.CACHE_WRITE,
                    Role.TOOL_PROMPT,
                    *INPUT_BY_MODALITY,
                    *CACHED_BY_MODALITY,
                    *TOOL_BY_MODALITY,
                    *OUTPUT_BY_MODALITY,
                }
            )
        )
    },
)
