"""OpenInference spans, `llm.token_count.*`: the prompt holds what was cached, the completion what was reasoned.

prompt 36, of it cache_read 35, completion 75   ->   uncached 1, cache_read 35, output 75
"""

from __future__ import annotations

from weighbridge.pipeline.ingest.dialect import Dialect
from weighbridge.pipeline.ingest.dialects import _spans

DIALECT = Dialect(
    name="openinference",
    apis=("openinference", "openinference_spans"),
    providers=("any",),
    source="https://github.com/Arize-ai/openinference/blob/main/spec/semantic_conventions.md",
    containers=("llm.token_count",),
    roles=_spans.OPENINFERENCE,
    axes=_spans.GROSS,
    absent=_spans.ABSENT,
    guessed=_spans.GUESSED,
)
