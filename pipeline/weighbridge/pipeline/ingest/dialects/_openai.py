"""What the two OpenAI APIs have in common: absent details, and who answers."""

from __future__ import annotations

from collections.abc import Mapping

from weighbridge.pipeline.ingest.dialect import (
    CACHED_BY_MODALITY,
    INPUT_BY_MODALITY,
    OUTPUT_BY_MODALITY,
    TOOL_BY_MODALITY,
    Absent,
    Axis,
    Role,
)

AXES: Mapping[Axis, tuple[bool, ...]] = {
    Axis.INPUT_INCLUDES_CACHE: (True, False),
    Axis.OUTPUT_INCLUDES_REASONING: (True, False),
}
_CACHED = (Role.CACHED_TEXT, *CACHED_BY_MODALITY)
_CACHED_BESIDE = {role: frozenset(_CACHED) - {role} for role in CACHED_BY_MODALITY}
ABSENT: Mapping[str, Absent] = {
    # The details came into the answer together with what they count: before, there was nothing to count.
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
        zero_beside=_CACHED_BESIDE,
    ),
    # Deployments and API versions differ in whether they show the details of what they did cache and reason.
    "azure": Absent(
        zero=frozenset({Role.TOOL_PROMPT, *TOOL_BY_MODALITY}),
        zero_beside={
            Role.CACHE_WRITE: frozenset({Role.CACHE_READ}),
            **dict.fromkeys(INPUT_BY_MODALITY, frozenset({Role.CACHE_READ})),
            **dict.fromkeys(OUTPUT_BY_MODALITY, frozenset({Role.REASONING})),
            **_CACHED_BESIDE,
        },
    ),
}
INPUT_DETAILS: Mapping[str, Role] = {
    "cached_tokens": Role.CACHE_READ,
    "cache_write_tokens": Role.CACHE_WRITE,
    "text_tokens": Role.INPUT_TEXT,
    "audio_tokens": Role.INPUT_AUDIO,
    "image_tokens": Role.INPUT_IMAGE,
    "video_tokens": Role.INPUT_VIDEO,
    "cached_tokens_details.text_tokens": Role.CACHED_TEXT,
    "cached_tokens_details.audio_tokens": Role.CACHED_AUDIO,
    "cached_tokens_details.image_tokens": Role.CACHED_IMAGE,
}
OUTPUT_DETAILS: Mapping[str, Role] = {
    "reasoning_tokens": Role.REASONING,
    "text_tokens": Role.OUTPUT_TEXT,
    "audio_tokens": Role.OUTPUT_AUDIO,
    "image_tokens": Role.OUTPUT_IMAGE,
    # Counted inside the output and billed; how much of it is visible text they do not say.
    "accepted_prediction_tokens": Role.ACCEPTED_PREDICTION,
    "rejected_prediction_tokens": Role.REJECTED_PREDICTION,
}


def below(parent: str, details: Mapping[str, Role]) -> dict[str, Role]:
    """The paths of one details object."""
    return {f"{parent}.{name}": role for name, role in details.items()}


CHAT: Mapping[str, Role] = {
    "prompt_tokens": Role.INPUT,
    "completion_tokens": Role.OUTPUT,
    "total_tokens": Role.TOTAL,
    **below("prompt_tokens_details", INPUT_DETAILS),
    **below("completion_tokens_details", OUTPUT_DETAILS),
}
