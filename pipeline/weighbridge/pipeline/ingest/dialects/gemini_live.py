"""Gemini Live: one report per turn; thoughts stand beside the response and the total leaves them out.

    prompt 417, response 74, thoughts 77, total 491   ->   417 + 74 = 491; output 151, total 568

77 thoughts cannot be part of 74, so they are outside; the total is that of the provider, ours counts every token.
Some sessions count and name their fields as generateContent does.
"""

from __future__ import annotations

from dataclasses import replace

from weighbridge.pipeline.ingest.dialect import Stream
from weighbridge.pipeline.ingest.dialects import gemini_generate_content
from weighbridge.pipeline.ingest.fact import Axis

DIALECT = replace(
    gemini_generate_content.DIALECT,
    name="gemini_live",
    apis=("gemini_live", "live", "bidiGenerateContent"),
    providers=("google", "vertex"),
    source="https://ai.google.dev/api/live#UsageMetadata",
    containers=("usageMetadata",),
    axes={**gemini_generate_content.DIALECT.axes, Axis.TOTAL_LEAVES_OUT_REASONING: (True, False)},
    stream=Stream(),
    open=False,
)
