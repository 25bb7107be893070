"""Bedrock Converse: the input excludes cache reads and writes, the total is the sum of all four.

    input 3, written 2,074, read 0, output 288, total 2,365   ->   3 + 2,074 + 0 + 288 = 2,365

Each cache field comes under two names, which are one count. Of OpenAI models the stream gives the whole input and a
total that counts the cached part once more: input 4,995 of it written 4,993, output 19, total 10,007.
"""

from __future__ import annotations

from weighbridge.pipeline.ingest.dialect import Absent, Dialect, Role, Stream
from weighbridge.pipeline.ingest.dialects import _absent
from weighbridge.pipeline.ingest.fact import Axis

USAGE = {
    "inputTokens": Role.INPUT,
    "outputTokens": Role.OUTPUT,
    "totalTokens": Role.TOTAL,
    "cacheReadInputTokens": Role.CACHE_READ,
    "cacheReadInputTokenCount": Role.CACHE_READ,
    "cacheWriteInputTokens": Role.CACHE_WRITE,
    "cacheWriteInputTokenCount": Role.CACHE_WRITE,
    "cacheDetails[5m].inputTokens": Role.CACHE_WRITE_5M,
    "cacheDetails[1h].inputTokens": Role.CACHE_WRITE_1H,
}

DIALECT = Dialect(
    name="bedrock_converse",
    apis=("bedrock_converse", "converse", "converse_stream"),
    providers=("bedrock",),
    source="https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_TokenUsage.html",
    containers=("usage", "metadata.usage"),
    roles=USAGE,
    axes={Axis.INPUT_INCLUDES_CACHE: (False, True), Axis.OUTPUT_INCLUDES_REASONING: (True,)},
    rare={Axis.TOTAL_COUNTS_CACHE_TWICE: (False, True)},
    # Models without a cache leave its fields out. How much of the output is reasoning no model says.
    absent={"any": Absent(zero=_absent.UNCACHED)},
    stream=Stream(ending=frozenset({"messageStop", "metadata"})),
    open=True,
)
