"""What the OpenAI APIs have in common: the names of their counts, absent details, conceivable readings.

Half the market answers in this shape. Names that only some of its speakers use stand here too: where two of them are
there for one count they must agree, and are never summed.
"""

from __future__ import annotations

from collections.abc import Mapping

from weighbridge.pipeline.ingest.dialect import (
    CACHED_BY_MODALITY,
    HIDDEN,
    INPUT_BY_MODALITY,
    OUTPUT_BY_MODALITY,
    TOOL_BY_MODALITY,
    Absent,
    Role,
)
from weighbridge.pipeline.ingest.fact import Axis

AXES: Mapping[Axis, tuple[bool, ...]] = {
    Axis.INPUT_INCLUDES_CACHE: (True, False),
    Axis.OUTPUT_INCLUDES_REASONING: (True, False),
}
# The total of a search model leaves out what it thought; nobody else's does.
RARE: Mapping[Axis, tuple[bool, ...]] = {Axis.TOTAL_LEAVES_OUT_REASONING: (False, True)}
# Groq's compound systems: the calls of single models that one answer was made of.
CHILDREN = ("usage_breakdown.models", "x_groq.usage_breakdown.models")
_CACHED = (Role.CACHED_TEXT, *CACHED_BY_MODALITY)
_CACHED_BESIDE = {role: frozenset(_CACHED) - {role} for role in CACHED_BY_MODALITY}
_SHOWN = frozenset(
    {
        Role.CACHE_READ,
        Role.CACHE_WRITE,
        Role.REASONING,
        Role.TOOL_PROMPT,
        *INPUT_BY_MODALITY,
        *TOOL_BY_MODALITY,
        *OUTPUT_BY_MODALITY,
    }
)


def absent(*zero: Role, unknown: frozenset[Role] = frozenset()) -> dict[str, Absent]:
    """The rules for absent fields.

    Args:
        zero: what is left out where it is zero, whoever answers.
        unknown: what is never zero for being left out.
    """
    return {
        # The details came into the answer together with what they count: before, there was nothing to count.
        "any": Absent(zero=(_SHOWN | set(zero)) - unknown, zero_beside=_CACHED_BESIDE),
        # Some servers, deployments and API versions do not show the details of what they did cache and reason.
        HIDDEN: Absent(
            zero=frozenset({Role.TOOL_PROMPT, *TOOL_BY_MODALITY, *zero}),
            zero_beside={
                Role.CACHE_WRITE: frozenset({Role.CACHE_READ}),
                **dict.fromkeys(INPUT_BY_MODALITY, frozenset({Role.CACHE_READ})),
                **{role: frozenset({Role.REASONING}) for role in OUTPUT_BY_MODALITY if role not in unknown},
                **_CACHED_BESIDE,
            },
        ),
        # Zeros are left out, and so are thoughts: those show in the total alone.
        "hidden_reasoning": Absent(zero=(_SHOWN | set(zero)) - unknown - {Role.REASONING}, zero_beside=_CACHED_BESIDE),
    }


INPUT_DETAILS: Mapping[str, Role] = {
    "cached_tokens": Role.CACHE_READ,
    "cache_write_tokens": Role.CACHE_WRITE,
    "cache_creation_tokens": Role.CACHE_WRITE,
    "cache_creation_input_tokens": Role.CACHE_WRITE,
    "created_cache_tokens": Role.CACHE_WRITE,
    "cache_creation.ephemeral_5m_input_tokens": Role.CACHE_WRITE_5M,
    "cache_creation.ephemeral_1h_input_tokens": Role.CACHE_WRITE_1H,
    "text_tokens": Role.INPUT_TEXT,
    "audio_tokens": Role.INPUT_AUDIO,
    "image_tokens": Role.INPUT_IMAGE,
    "video_tokens": Role.INPUT_VIDEO,
    "multimodal_tokens.audio": Role.INPUT_AUDIO,
    "multimodal_tokens.image": Role.INPUT_IMAGE,
    "multimodal_tokens.video": Role.INPUT_VIDEO,
    "cached_tokens_details.text_tokens": Role.CACHED_TEXT,
    "cached_tokens_details.audio_tokens": Role.CACHED_AUDIO,
    "cached_tokens_details.image_tokens": Role.CACHED_IMAGE,
    # Where the cache lay, and a modality that is nobody else's: parts of what is counted above.
    "cached_tokens_details.device": Role.EVIDENCE,
    "cached_tokens_details.host": Role.EVIDENCE,
    "cached_tokens_details.storage": Role.EVIDENCE,
    "grok_tokens": Role.EVIDENCE,
}
OUTPUT_DETAILS: Mapping[str, Role] = {
    "reasoning_tokens": Role.REASONING,
    "text_tokens": Role.OUTPUT_TEXT,
    "audio_tokens": Role.OUTPUT_AUDIO,
    "image_tokens": Role.OUTPUT_IMAGE,
    "video_tokens": Role.OUTPUT_VIDEO,
    # Counted inside the output and billed; how much of it is visible text they do not say.
    "accepted_prediction_tokens": Role.ACCEPTED_PREDICTION,
    "rejected_prediction_tokens": Role.REJECTED_PREDICTION,
    "grok_tokens": Role.EVIDENCE,
    # vLLM: what its own tools answered between two turns; the model did not write it, and reads it as input.
    "tool_output_tokens": Role.EVIDENCE,
}


def below(parent: str, details: Mapping[str, Role]) -> dict[str, Role]:
    """The paths of one details object."""
    return {f"{parent}.{name}": role for name, role in details.items()}


# Times, money, searches and the like: kept as they were said, part of no sum.
_KEPT = """
type service_tier seconds prompt_audio_seconds output_audio_seconds billable_audio_seconds request_count
queue_time prompt_time completion_time total_time
cost is_byok cost_in_usd_ticks pydantic_ai_gateway.cost_estimate
cost_details.upstream_inference_cost cost_details.upstream_inference_prompt_cost
cost_details.upstream_inference_completions_cost cost_details.upstream_inference_input_cost
cost_details.upstream_inference_output_cost cost_details.cached_cost
cost.input_tokens_cost cost.output_tokens_cost cost.reasoning_tokens_cost cost.citation_tokens_cost
cost.search_queries_cost cost.request_cost cost.total_cost
citation_tokens num_search_queries search_context_size num_sources_used num_server_side_tools_used
server_tool_use_details.tool_calls_requested server_tool_use_details.tool_calls_executed
server_tool_use_details.web_search_requests
server_side_tool_usage_details.web_search_calls server_side_tool_usage_details.x_search_calls
server_side_tool_usage_details.code_interpreter_calls server_side_tool_usage_details.file_search_calls
server_side_tool_usage_details.mcp_calls server_side_tool_usage_details.document_search_calls
server_side_tool_usage_details.image_generation_calls
context_details.input_tokens context_details.output_tokens
"""
KEPT: Mapping[str, Role] = dict.fromkeys(_KEPT.split(), Role.EVIDENCE)
CHAT: Mapping[str, Role] = {
    "prompt_tokens": Role.INPUT,
    "completion_tokens": Role.OUTPUT,
    "total_tokens": Role.TOTAL,
    **below("prompt_tokens_details", INPUT_DETAILS),
    **below("prompt_token_details", INPUT_DETAILS),
    **below("completion_tokens_details", OUTPUT_DETAILS),
    **below("completion_token_details", OUTPUT_DETAILS),
    # DeepSeek: hit + miss = prompt.
    "prompt_cache_hit_tokens": Role.CACHE_READ,
    "prompt_cache_miss_tokens": Role.INPUT_UNCACHED,
    # Mistral, Moonshot and routers, gateways before Anthropic models.
    "num_cached_tokens": Role.CACHE_READ,
    "cached_tokens": Role.CACHE_READ,
    "cache_read_input_tokens": Role.CACHE_READ,
    "cache_creation_input_tokens": Role.CACHE_WRITE,
    "reasoning_tokens": Role.REASONING,
    "audio_prompt_tokens": Role.INPUT_AUDIO,
    **KEPT,
}
RESPONSES: Mapping[str, Role] = {
    "input_tokens": Role.INPUT,
    "output_tokens": Role.OUTPUT,
    "total_tokens": Role.TOTAL,
    **below("input_tokens_details", INPUT_DETAILS),
    **below("input_token_details", INPUT_DETAILS),
    **below("output_tokens_details", OUTPUT_DETAILS),
    **below("output_token_details", OUTPUT_DETAILS),
    **KEPT,
}
