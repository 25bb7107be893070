"""Spans of Strands Agents: names like those of OpenTelemetry, and the numbers of Bedrock's Converse as they came.

    input 4, cache_read 1,000, cache_write 200, output 10, total 1,214   ->   input_total 1,204

Converse counts cached tokens beside the input, and its total is the sum of all four.
"""

from __future__ import annotations

from weighbridge.pipeline.ingest.dialect import Dialect
from weighbridge.pipeline.ingest.dialects import _spans

DIALECT = Dialect(
    name="strands",
    apis=("strands",),
    providers=("any",),
    source="https://github.com/strands-agents/sdk-python/blob/main/src/strands/telemetry/tracer.py",
    containers=("gen_ai.usage",),
    roles=_spans.GEN_AI,
    axes=_spans.NET,
    absent=_spans.ABSENT,
    guessed=_spans.GUESSED,
)
