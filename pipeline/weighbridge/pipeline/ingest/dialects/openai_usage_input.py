"""OpenAI's organization usage pages of what has only an input, or no tokens at all: embeddings, moderations, images ...

embeddings: input 16   ->   input 16, output 0
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
from weighbridge.pipeline.ingest.dialects import openai_usage
from weighbridge.pipeline.ingest.fact import Axis

DIALECT = Dialect(
    name="openai_usage_input",
    apis=(
        "openai_usage_input",
        "openai_usage_embeddings",
        "openai_usage_moderations",
        "openai_usage_images",
        "openai_usage_audio_speeches",
        "openai_usage_audio_transcriptions",
        "openai_usage_vector_stores",
        "openai_usage_code_interpreter_sessions",
    ),
    providers=("openai",),
    source="https://platform.openai.com/docs/api-reference/usage/embeddings_object",
    containers=("result",),
    roles=openai_usage.ROLES,
    axes={Axis.INPUT_INCLUDES_CACHE: (True,), Axis.OUTPUT_INCLUDES_REASONING: (True,)},
    absent={
        "any": Absent(
            zero=frozenset(
                {
                    Role.OUTPUT,
                    Role.REASONING,
                    Role.CACHE_READ,
                    Role.CACHE_WRITE,
                    Role.TOOL_PROMPT,
                    *TOOL_BY_MODALITY,
                    *CACHED_BY_MODALITY,
                    *OUTPUT_BY_MODALITY,
                }
            )
        )
    },
)
