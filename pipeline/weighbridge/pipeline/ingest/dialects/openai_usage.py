"""OpenAI's organization usage pages: sums of a period, the cached input inside the input.

    input 1,000 = uncached 550 + cached 400 + written 50;  output 500   ->   what was reasoned is not said

Details by modality count what was not cached. Writes come by how long they are kept: their sum is what was written.
"""

from __future__ import annotations

from weighbridge.pipeline.ingest.dialect import (
    CACHED_BY_MODALITY,
    OUTPUT_BY_MODALITY,
    TOOL_BY_MODALITY,
    Absent,
    Dialect,
    Role,
)
from weighbridge.pipeline.ingest.fact import Axis

ROLES = {
    "input_tokens": Role.INPUT,
    "output_tokens": Role.OUTPUT,
    "input_uncached_tokens": Role.INPUT_UNCACHED,
    "input_cached_tokens": Role.CACHE_READ,
    "input_cache_write_tokens[*]": Role.CACHE_WRITE,
    "input_cached_text_tokens": Role.CACHED_TEXT,
    "input_cached_audio_tokens": Role.CACHED_AUDIO,
    "input_cached_image_tokens": Role.CACHED_IMAGE,
    "input_audio_tokens": Role.UNCACHED_AUDIO,
    "input_image_tokens": Role.UNCACHED_IMAGE,
    "output_text_tokens": Role.OUTPUT_TEXT,
    "output_audio_tokens": Role.OUTPUT_AUDIO,
    "output_image_tokens": Role.OUTPUT_IMAGE,
    **dict.fromkeys(
        ("input_text_tokens", "num_model_requests", "images", "characters", "seconds", "usage_bytes", "num_sessions"),
        Role.EVIDENCE,
    ),
}

DIALECT = Dialect(
    name="openai_usage",
    apis=("openai_usage", "openai_usage_completions", "openai_usage_decisions"),
    providers=("openai",),
    source="https://platform.openai.com/docs/api-reference/usage/completions_object",
    containers=("result",),
    roles=ROLES,
    axes={Axis.INPUT_INCLUDES_CACHE: (True,), Axis.OUTPUT_INCLUDES_REASONING: (True,)},
    absent={
        "any": Absent(
            # Before the page showed writes there were none.
            zero=frozenset({Role.CACHE_WRITE, Role.TOOL_PROMPT, *TOOL_BY_MODALITY}),
            zero_beside={
                **dict.fromkeys(CACHED_BY_MODALITY, frozenset({Role.CACHED_TEXT})),
                **dict.fromkeys(OUTPUT_BY_MODALITY, frozenset({Role.OUTPUT_TEXT})),
            },
        )
    },
)
