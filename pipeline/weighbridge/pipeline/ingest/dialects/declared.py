"""Our own vocabulary: counts that an import maps to the names of this product. Nothing is conceivable but what it says.

    input_total 200, cache_read 150, output_total 40   ->   what the other 50 input tokens are is not said: unknown

A name that is left out is unknown, never zero; where the rest leaves nothing for it, zero is proved.
"""

from __future__ import annotations

from weighbridge.pipeline.ingest.dialect import (
    CACHED_BY_MODALITY,
    OUTPUT_BY_MODALITY,
    SPLIT,
    UNCACHED_BY_MODALITY,
    Absent,
    Dialect,
    Role,
)
from weighbridge.pipeline.ingest.fact import Axis

DIALECT = Dialect(
    name="declared",
    apis=("declared",),
    providers=("any",),
    source="schemas/vocabulary.json",
    containers=("usage",),
    roles={
        "input_total": Role.INPUT,
        "output_total": Role.OUTPUT,
        "total": Role.TOTAL,
        "input_uncached": Role.INPUT_UNCACHED,
        "cache_read": Role.CACHE_READ,
        "cache_write_5m": Role.CACHE_WRITE_5M,
        "cache_write_1h": Role.CACHE_WRITE_1H,
        "cache_write_unknown": Role.CACHE_WRITE_UNKNOWN,
        "output_visible": Role.OUTPUT_VISIBLE,
        "reasoning": Role.REASONING,
        **{f"input_uncached_{name}": role for name, role in zip(SPLIT, UNCACHED_BY_MODALITY, strict=True)},
        **{f"cache_read_{name}": role for name, role in zip(SPLIT, CACHED_BY_MODALITY, strict=True)},
        **{f"output_visible_{name}": role for name, role in zip(SPLIT, OUTPUT_BY_MODALITY, strict=True)},
    },
    axes={Axis.INPUT_INCLUDES_CACHE: (True,), Axis.OUTPUT_INCLUDES_REASONING: (True,)},
    absent={"any": Absent(zero=frozenset({Role.TOOL_PROMPT}))},
    direct=True,
)
