"""Spans of the Vercel AI SDK, `ai.usage.*` by version, with the `gen_ai.usage.*` it writes beside them.

    inputTokens 15, outputTokens 112, totalTokens 127, cachedInputTokens 0, reasoningTokens 0

Version 4 says promptTokens and completionTokens, 5 and later inputTokens and outputTokens; some spans have both, and
then they must agree. What the input holds was the provider's own before version 6: Anthropic's cached tokens stood
beside it.
"""

from __future__ import annotations

from weighbridge.pipeline.ingest.dialect import Dialect
from weighbridge.pipeline.ingest.dialects import _spans

DIALECT = Dialect(
    name="vercel_ai",
    apis=("vercel_ai",),
    providers=("any",),
    source="https://ai-sdk.dev/docs/ai-sdk-core/telemetry",
    containers=("ai.usage", "gen_ai.usage"),
    roles={**_spans.GEN_AI, **_spans.VERCEL},
    axes=_spans.GROSS,
    absent=_spans.ABSENT,
    guessed=_spans.GUESSED,
)
