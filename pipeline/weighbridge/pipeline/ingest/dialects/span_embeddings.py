"""Spans of an embedding, whoever wrote them: all there is, is the input.

ai.usage.tokens 10   ->   input 10, output 0
"""

from __future__ import annotations

from weighbridge.pipeline.ingest.dialect import Dialect
from weighbridge.pipeline.ingest.dialects import _spans
from weighbridge.pipeline.ingest.fact import Axis

DIALECT = Dialect(
    name="span_embeddings",
    apis=("span_embeddings",),
    providers=("any",),
    source="https://github.com/open-telemetry/semantic-conventions-genai/blob/main/model/gen-ai/spans.yaml",
    containers=("gen_ai.usage", "llm.token_count", "ai.usage", "llm.usage"),
    roles={**_spans.GEN_AI, **_spans.OPENINFERENCE, **_spans.VERCEL},
    axes={Axis.INPUT_INCLUDES_CACHE: (True,), Axis.OUTPUT_INCLUDES_REASONING: (True,)},
    absent=_spans.ABSENT_OF_EMBEDDINGS,
)
