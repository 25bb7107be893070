"""Gemini generateContent: thoughts outside the candidates, the tool-use prompt outside the prompt, cached inside it.

    prompt 80, tool-use prompt 237, candidates 173, thoughts 60   ->   input 317, output 233, total 550

Zeros are left out of the answer. Every chunk of a stream repeats the running totals: the last one counts.
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

_MODALITIES = ("TEXT", "DOCUMENT", "AUDIO", "IMAGE", "VIDEO")
_GROUPS = {
    "promptTokensDetails": "input",
    "toolUsePromptTokensDetails": "tool",
    "cacheTokensDetails": "cached",
    "candidatesTokensDetails": "output",
    "responseTokensDetails": "output",
}
_CACHED = frozenset({Role.CACHED_TEXT, Role.CACHED_DOCUMENT, *CACHED_BY_MODALITY})

DIALECT = Dialect(
    name="gemini_generate_content",
    apis=("gemini_generate_content", "generateContent", "generate_content"),
    providers=("google", "vertex"),
    source="https://ai.google.dev/api/generate-content#UsageMetadata",
    containers=("usageMetadata", "response.usageMetadata"),
    roles={
        "promptTokenCount": Role.INPUT,
        "candidatesTokenCount": Role.OUTPUT,
        "responseTokenCount": Role.OUTPUT,
        "totalTokenCount": Role.TOTAL,
        "cachedContentTokenCount": Role.CACHE_READ,
        "thoughtsTokenCount": Role.REASONING,
        "toolUsePromptTokenCount": Role.TOOL_PROMPT,
        **{
            f"{details}[{modality}].tokenCount": Role(f"{group}_{modality.lower()}")
            for details, group in _GROUPS.items()
            for modality in _MODALITIES
        },
        **{f"{details}[*].modality": Role.EVIDENCE for details in _GROUPS},
        "trafficType": Role.EVIDENCE,
        "serviceTier": Role.EVIDENCE,
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
                    Role.INPUT,
                    Role.OUTPUT,
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
    stream=Stream(finish=(("candidates", "finishReason"),)),
    itemised=True,
    open=True,
)
