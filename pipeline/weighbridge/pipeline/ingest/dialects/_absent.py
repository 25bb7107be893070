"""What most APIs have in common about absent fields: a breakdown they do not have counts nothing."""

from __future__ import annotations

from weighbridge.pipeline.ingest.dialect import (
    CACHED_BY_MODALITY,
    INPUT_BY_MODALITY,
    OUTPUT_BY_MODALITY,
    TOOL_BY_MODALITY,
    Role,
)

# No figures by modality, and no prompt of tools beside the prompt.
PLAIN: frozenset[Role] = frozenset(
    {Role.TOOL_PROMPT, *INPUT_BY_MODALITY, *TOOL_BY_MODALITY, *CACHED_BY_MODALITY, *OUTPUT_BY_MODALITY}
)
# Nothing is kept in a cache either.
UNCACHED: frozenset[Role] = PLAIN | {Role.CACHE_READ, Role.CACHE_WRITE}
# The answer is no text at all: vectors, scores.
NO_OUTPUT: frozenset[Role] = UNCACHED | {Role.OUTPUT, Role.REASONING}
