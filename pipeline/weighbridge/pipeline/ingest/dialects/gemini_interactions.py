"""Gemini Interactions: four totals side by side, thoughts and tool-use prompt outside output and input.

input 22, tool use 198, output 590, thoughts 1,173   ->   input 220, output 1,763, total 1,983
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
    Stream,
)
from weighbridge.pipeline.ingest.fact import Axis

_MODALITIES = ("text", "document", "audio", "image", "video")
_GROUPS = {
    "input_tokens_by_modality": "input",
    "tool_use_tokens_by_modality": "tool",
    "cached_tokens_by_modality": "cached",
    "output_tokens_by_modality": "output",
}
_CACHED = frozenset({Role.CACHED_TEXT, Role.CACHED_DOCUMENT, *CACHED_BY_MODALITY})

DIALECT = Dialect(
    name="gemini_interactions",
    apis=("gemini_interactions", "interactions"),
    providers=("google", "vertex"),
    source="https://ai.google.dev/api/interactions-api",
    containers=("usage", "interaction.usage"),
    roles={
        "total_input_tokens": Role.INPUT,
        "total_output_tokens": Role.OUTPUT,
        "total_tokens": Role.TOTAL,
        "total_cached_tokens": Role.CACHE_READ,
        "total_thought_tokens": Role.REASONING,
        "total_tool_use_tokens": Role.TOOL_PROMPT,
        **{
            f"{details}[{modality}].tokens": Role(f"{group}_{modality}")
            for details, group in _GROUPS.items()
            for modality in _MODALITIES
        },
    },
    axes={
        Axis.INPUT_INCLUDES_CACHE: (True, False),
        Axis.OUTPUT_INCLUDES_REASONING: (False, True),
        Axis.INPUT_INCLUDES_TOOL_PROMPT: (False, True),
    },
    absent={
        "any": Absent(
            zero=frozenset(
                {
                    Role.CACHE_READ,
                    Role.CACHE_WRITE,
                    Role.REASONING,
                    Role.TOOL_PROMPT,
                    *INPUT_BY_MODALITY,
                    *TOOL_BY_MODALITY,
                    *OUTPUT_BY_MODALITY,
                }
            ),
            zero_beside={role: _CACHED - {role} for role in CACHED_BY_MODALITY},
        )
    },
    stream=Stream(),
)
