"""What all usage of Langfuse has in common: its names, and that types are disjoint only as far as they are told.

By convention the types of usage do not overlap, so an input stands beside the cached tokens, an output beside the
reasoning. Where an emitter tells no such type, its input and output are whole, and what is inside them is unknown. So
there is one dialect for each combination, and an importer takes the one that fits what a record tells.
"""

from __future__ import annotations

from collections.abc import Mapping

from weighbridge.pipeline.ingest.dialect import Dialect, Role
from weighbridge.pipeline.ingest.dialects._logs import HIDDEN_DETAILS, SUMMED_TOTAL
from weighbridge.pipeline.ingest.fact import Axis

ROLES: Mapping[str, Role] = {
    "input": Role.INPUT,
    "output": Role.OUTPUT,
    "total": Role.TOTAL,
    "promptTokens": Role.INPUT,
    "completionTokens": Role.OUTPUT,
    "totalTokens": Role.TOTAL,
    SUMMED_TOTAL: Role.EVIDENCE,
    "input_cached_tokens": Role.CACHE_READ,
    "input_cache_read": Role.CACHE_READ,
    "cache_read_input_tokens": Role.CACHE_READ,
    "prompt_details.cache_read": Role.CACHE_READ,
    "cache_creation_input_tokens": Role.CACHE_WRITE,
    "input_cache_creation": Role.CACHE_WRITE,
    "prompt_details.cache_write": Role.CACHE_WRITE,
    "input_cache_creation_5m": Role.CACHE_WRITE_5M,
    "input_cache_creation_1h": Role.CACHE_WRITE_1H,
    "output_reasoning": Role.REASONING,
    "output_reasoning_tokens": Role.REASONING,
    "completion_details.reasoning": Role.REASONING,
    "input_audio": Role.INPUT_AUDIO,
    "input_audio_tokens": Role.INPUT_AUDIO,
    "prompt_details.audio": Role.INPUT_AUDIO,
    "output_audio": Role.OUTPUT_AUDIO,
    "output_audio_tokens": Role.OUTPUT_AUDIO,
    "completion_details.audio": Role.OUTPUT_AUDIO,
}


def told(name: str, *, cache: bool, reasoning: bool) -> Dialect:
    """The dialect of records that tell types of cached tokens, of reasoning, of both or of none."""
    return Dialect(
        name=name,
        apis=(name,),
        providers=("any",),
        source="https://langfuse.com/docs/model-usage-and-cost",
        containers=("usageDetails", "usage", "observation"),
        roles=ROLES,
        axes={
            Axis.INPUT_INCLUDES_CACHE: (not cache, cache),
            Axis.OUTPUT_INCLUDES_REASONING: (not reasoning, reasoning),
        },
        absent=HIDDEN_DETAILS,
    )
