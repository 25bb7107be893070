"""Bedrock InvokeModel: the body is each vendor's own, and the service counts once more in headers or stream metrics.

    body: input 392, output 133; invocation metrics: input 392, output 97   ->   392 and 133, the service differs

The model's own usage is read; the service's count fills what the body leaves out (Cohere, embeddings: all of it).
Where both are there and differ, the reading is ASSUMED and flagged. The input excludes cache reads and writes.
"""

from __future__ import annotations

from weighbridge.pipeline.ingest.dialect import Absent, Dialect, Merge, Role, Stream
from weighbridge.pipeline.ingest.dialects import _absent, anthropic_messages, bedrock_converse
from weighbridge.pipeline.ingest.fact import Axis
from weighbridge.schemas.enumerations import Ended

_METRICS = {
    "inputTokenCount": Role.SERVICE_INPUT,
    "outputTokenCount": Role.SERVICE_OUTPUT,
    "cacheReadInputTokenCount": Role.SERVICE_CACHE_READ,
    "cacheWriteInputTokenCount": Role.SERVICE_CACHE_WRITE,
    "invocationLatency": Role.EVIDENCE,
    "firstByteLatency": Role.EVIDENCE,
}
_HEADERS = {
    "input-token-count": Role.SERVICE_INPUT,
    "output-token-count": Role.SERVICE_OUTPUT,
    "cache-read-input-token-count": Role.SERVICE_CACHE_READ,
    "cache-write-input-token-count": Role.SERVICE_CACHE_WRITE,
    "invocation-latency": Role.EVIDENCE,
}
# Bodies that do not keep their counts in an object of their own: Llama, then Titan.
_BARE = {
    "prompt_token_count": Role.INPUT,
    "generation_token_count": Role.OUTPUT,
    "inputTextTokenCount": Role.INPUT,
    "results[*].tokenCount": Role.OUTPUT,
    "totalOutputTextTokenCount": Role.OUTPUT,
}
_OPENAI = {"prompt_tokens": Role.INPUT, "completion_tokens": Role.OUTPUT, "total_tokens": Role.TOTAL}

DIALECT = Dialect(
    name="bedrock_invoke_model",
    apis=("bedrock_invoke_model", "invoke_model", "invoke_model_stream"),
    providers=("bedrock",),
    source="https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_InvokeModel.html",
    containers=("usage", "metadata.usage", "message.usage", ""),
    roles={
        **anthropic_messages.USAGE,
        **bedrock_converse.USAGE,
        **_OPENAI,
        **_BARE,
        **{f"amazon-bedrock-invocationMetrics.{name}": role for name, role in _METRICS.items()},
        **{f"header.x-amzn-bedrock-{name}": role for name, role in _HEADERS.items()},
    },
    axes={Axis.INPUT_INCLUDES_CACHE: (False, True), Axis.OUTPUT_INCLUDES_REASONING: (True,)},
    absent={
        "any": Absent(zero=_absent.UNCACHED),
        "embeddings": Absent(zero=_absent.NO_OUTPUT),
    },
    stream=Stream(
        merge=Merge.START_DELTA,
        opening=frozenset({"message_start"}),
        revising=frozenset({"message_delta"}),
        closing={"message_delta": Ended.COMPLETE, "message_stop": Ended.COMPLETE},
        ending=frozenset({"amazon-bedrock-invocationMetrics"}),
        unclosed=Ended.CUT,
    ),
    iterations=anthropic_messages.ITERATIONS,
)
