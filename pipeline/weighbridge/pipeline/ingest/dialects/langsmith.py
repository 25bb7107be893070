"""LangSmith runs: `usage_metadata`, whose counts are sums of all their types, or the older fields of the run.

input 1,200, of it read 1,000; output 80, of it reasoning 64   ->   uncached 200, cache_read 1,000, visible 16
"""

from __future__ import annotations

from weighbridge.pipeline.ingest.dialect import Dialect, Role
from weighbridge.pipeline.ingest.dialects._logs import HIDDEN_DETAILS, SUMMED_TOTAL
from weighbridge.pipeline.ingest.fact import Axis

_INPUT = {
    "cache_read": Role.CACHE_READ,
    "cache_creation": Role.CACHE_WRITE,
    "ephemeral_5m_input_tokens": Role.CACHE_WRITE_5M,
    "ephemeral_1h_input_tokens": Role.CACHE_WRITE_1H,
    "cache_read_over_200k": Role.EVIDENCE,  # a part of the reads with a price of its own
    "audio": Role.INPUT_AUDIO,
}
_OUTPUT = {"reasoning": Role.REASONING, "audio": Role.OUTPUT_AUDIO}

DIALECT = Dialect(
    name="langsmith",
    apis=("langsmith",),
    providers=("any",),
    source="https://docs.langchain.com/langsmith/log-llm-trace",
    containers=("usage_metadata", "run"),
    roles={
        "input_tokens": Role.INPUT,
        "prompt_tokens": Role.INPUT,
        "output_tokens": Role.OUTPUT,
        "completion_tokens": Role.OUTPUT,
        "total_tokens": Role.TOTAL,
        SUMMED_TOTAL: Role.EVIDENCE,
        **{
            f"{group}.{n}": role
            for group in ("input_token_details", "prompt_token_details")
            for n, role in _INPUT.items()
        },
        **{
            f"{group}.{n}": role
            for group in ("output_token_details", "completion_token_details")
            for n, role in _OUTPUT.items()
        },
    },
    axes={
        Axis.INPUT_INCLUDES_CACHE: (True, False),
        Axis.OUTPUT_INCLUDES_REASONING: (True, False),
    },
    absent=HIDDEN_DETAILS,
)
