"""Spans with `gen_ai.usage.*`: OpenTelemetry's names, current and old, those of OpenLLMetry, Sentry, Pydantic AI.

    input 2,600, cache_read 2,000, cache_creation 400   ->   uncached 200, as the convention has it: all are input

The convention says that cached tokens are part of the input; an emitter that passes on the figures of a provider who
leaves them out breaks it, and where numbers show that (cached > input, or a total) the other reading is taken.
"""

from __future__ import annotations

from weighbridge.pipeline.ingest.dialect import Dialect
from weighbridge.pipeline.ingest.dialects import _spans

DIALECT = Dialect(
    name="otel_gen_ai",
    apis=("otel_gen_ai", "otel_spans"),
    providers=("any",),
    source="https://github.com/open-telemetry/semantic-conventions-genai/blob/main/model/gen-ai/registry.yaml",
    containers=("gen_ai.usage", "llm.usage"),
    roles=_spans.GEN_AI,
    axes=_spans.GROSS,
    absent=_spans.ABSENT,
    guessed=_spans.GUESSED,
)
