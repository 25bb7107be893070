"""What usage in the logs of gateways and tracers has in common: it is a copy, and nobody has to show the details.

A total that is the mere sum of what stands beside it may have been added up by the log itself: it proves nothing about
what contains what. Such a total is kept as `summed_total`; any other one is the provider's and weighs the readings.
"""

from __future__ import annotations

from collections.abc import Mapping

from weighbridge.pipeline.ingest.dialect import (
    CACHED_BY_MODALITY,
    INPUT_BY_MODALITY,
    OUTPUT_BY_MODALITY,
    TOOL_BY_MODALITY,
    Absent,
    Role,
)

SUMMED_TOTAL = "summed_total"
_NO_TOOLS = frozenset({Role.TOOL_PROMPT, *TOOL_BY_MODALITY})
_CACHE = frozenset({Role.CACHE_READ, Role.CACHE_WRITE, Role.CACHE_WRITE_5M, Role.CACHE_WRITE_1H})
# Where one figure of the cache is shown the log has cache details, and leaves out those that are zero.
_BESIDE: Mapping[Role, frozenset[Role]] = {
    Role.CACHE_READ: _CACHE - {Role.CACHE_READ},
    Role.CACHE_WRITE: frozenset({Role.CACHE_READ}),
    **dict.fromkeys(INPUT_BY_MODALITY, _CACHE),
    **dict.fromkeys(CACHED_BY_MODALITY, _CACHE),
    **dict.fromkeys(OUTPUT_BY_MODALITY, frozenset({Role.REASONING})),
}
_SHOWN = _NO_TOOLS | {
    Role.CACHE_READ,
    Role.CACHE_WRITE,
    Role.REASONING,
    *INPUT_BY_MODALITY,
    *CACHED_BY_MODALITY,
    *OUTPUT_BY_MODALITY,
}
# A log that does not show a detail may not have been told it.
HIDDEN_DETAILS: Mapping[str, Absent] = {"any": Absent(zero=_NO_TOOLS, zero_beside=_BESIDE)}
# These providers show what they cache and reason whenever they do, so a copy without it had nothing to copy.
SHOWN_BY_THESE: Mapping[str, Absent] = {
    **HIDDEN_DETAILS,
    **dict.fromkeys(("openai", "anthropic"), Absent(zero=_SHOWN)),
}
