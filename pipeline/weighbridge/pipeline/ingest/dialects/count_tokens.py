"""Counting a prompt (Anthropic, Bedrock, Gemini, Vertex AI): nothing was served, so nothing is used or billed.

input_tokens 14   ->   no usage; 14 stands in `estimated`, beside the counts and never in them
"""

from __future__ import annotations

from weighbridge.pipeline.ingest.dialect import Absent, Dialect, Role, Stream
from weighbridge.pipeline.ingest.dialects import _absent
from weighbridge.pipeline.ingest.fact import Axis

DIALECT = Dialect(
    name="count_tokens",
    apis=("count_tokens", "countTokens"),
    providers=("anthropic", "bedrock", "google", "vertex"),
    source="https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_CountTokens.html",
    containers=("usage", ""),
    roles={
        "input_tokens": Role.WOULD_BE_INPUT,
        "inputTokens": Role.WOULD_BE_INPUT,
        "totalTokens": Role.WOULD_BE_INPUT,
        "cachedContentTokenCount": Role.EVIDENCE,
        "promptTokensDetails[*].tokenCount": Role.EVIDENCE,
    },
    axes={Axis.INPUT_INCLUDES_CACHE: (True,), Axis.OUTPUT_INCLUDES_REASONING: (True,)},
    absent={"any": Absent(zero=_absent.NO_OUTPUT)},
    stream=Stream(),
)
