"""Gemini cachedContents: what a call wrote into the cache, for a lifetime the answer does not name.

total 3,512   ->   input 3,512, all of it written; output 0
"""

from __future__ import annotations

from weighbridge.pipeline.ingest.dialect import Absent, Dialect, Role, Stream
from weighbridge.pipeline.ingest.dialects import _absent
from weighbridge.pipeline.ingest.fact import Axis

DIALECT = Dialect(
    name="gemini_cached_contents",
    apis=("gemini_cached_contents", "cachedContents", "other:/v1beta/cachedContents"),
    providers=("google", "vertex"),
    source="https://ai.google.dev/api/caching#CachedContent",
    containers=("usageMetadata",),
    roles={"totalTokenCount": Role.CACHE_WRITE},
    axes={Axis.INPUT_INCLUDES_CACHE: (False,), Axis.OUTPUT_INCLUDES_REASONING: (True,)},
    absent={"any": Absent(zero=(_absent.NO_OUTPUT - {Role.CACHE_WRITE}) | {Role.INPUT})},
    stream=Stream(),
)
