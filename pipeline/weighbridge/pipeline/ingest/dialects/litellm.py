"""LiteLLM's SpendLogs: usage of every provider in the shape of Chat Completions, once as columns, once as an object.

    usage.prompt_tokens 2,600, of it read 2,000 and written 400   ->   uncached 200, cache_read 2,000, written 400

The columns are in `spend_log`, `metadata.usage_object` is in `usage`; where both have a count they must agree. Newer
releases put the cache reads and writes of every provider into the prompt; what older ones wrote for Anthropic may
leave them out, which shows where they are more than the prompt.
"""

from __future__ import annotations

from weighbridge.pipeline.ingest.dialect import Dialect, Role
from weighbridge.pipeline.ingest.dialects._logs import SHOWN_BY_THESE, SUMMED_TOTAL
from weighbridge.pipeline.ingest.fact import Axis

# What stands beside the counts of a usage object: kept, and no part of them.
_BESIDE = ("server_tool_use.web_search_requests", "cost", "service_tier", "inference_geo", "speed")
_ROLES = {
    "prompt_tokens": Role.INPUT,
    "completion_tokens": Role.OUTPUT,
    "total_tokens": Role.TOTAL,
    SUMMED_TOTAL: Role.EVIDENCE,
    "cache_read_input_tokens": Role.CACHE_READ,
    "prompt_tokens_details.cached_tokens": Role.CACHE_READ,
    "cache_creation_input_tokens": Role.CACHE_WRITE,
    "prompt_tokens_details.cache_write_tokens": Role.CACHE_WRITE,
    "prompt_tokens_details.cache_creation_tokens": Role.CACHE_WRITE,
    "prompt_tokens_details.cache_creation_token_details.ephemeral_5m_input_tokens": Role.CACHE_WRITE_5M,
    "prompt_tokens_details.cache_creation_token_details.ephemeral_1h_input_tokens": Role.CACHE_WRITE_1H,
    "prompt_tokens_details.audio_tokens": Role.INPUT_AUDIO,
    "prompt_tokens_details.image_tokens": Role.INPUT_IMAGE,
    "prompt_tokens_details.video_tokens": Role.INPUT_VIDEO,
    # The gateway works these out by subtraction, so they settle nothing.
    "prompt_tokens_details.text_tokens": Role.EVIDENCE,
    "completion_tokens_details.text_tokens": Role.EVIDENCE,
    "completion_tokens_details.reasoning_tokens": Role.REASONING,
    "completion_tokens_details.audio_tokens": Role.OUTPUT_AUDIO,
    "completion_tokens_details.image_tokens": Role.OUTPUT_IMAGE,
    "completion_tokens_details.video_tokens": Role.OUTPUT_VIDEO,
    "completion_tokens_details.accepted_prediction_tokens": Role.ACCEPTED_PREDICTION,
    "completion_tokens_details.rejected_prediction_tokens": Role.REJECTED_PREDICTION,
}
COUNTED: tuple[str, ...] = tuple(_ROLES)

DIALECT = Dialect(
    name="litellm",
    apis=("litellm",),
    providers=("any",),
    source="https://github.com/BerriAI/litellm/blob/main/schema.prisma",
    containers=("usage", "spend_log"),
    roles={**_ROLES, **dict.fromkeys(_BESIDE, Role.EVIDENCE)},
    axes={
        Axis.INPUT_INCLUDES_CACHE: (True, False),
        Axis.OUTPUT_INCLUDES_REASONING: (True, False),
    },
    absent=SHOWN_BY_THESE,
)
