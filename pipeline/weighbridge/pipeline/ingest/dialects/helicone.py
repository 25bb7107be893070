"""Helicone requests: the cached tokens stand beside the prompt, and the total is added up when the rows are asked for.

prompt 200, read 1,800, written 400, completion 50   ->   input 2,400
"""

from __future__ import annotations

from weighbridge.pipeline.ingest.dialect import Dialect, Role
from weighbridge.pipeline.ingest.dialects._logs import HIDDEN_DETAILS
from weighbridge.pipeline.ingest.fact import Axis

DIALECT = Dialect(
    name="helicone",
    apis=("helicone",),
    providers=("any",),
    source="https://docs.helicone.ai/rest/request/post-v1requestquery-clickhouse",
    containers=("request_response",),
    roles={
        "prompt_tokens": Role.INPUT,
        "completion_tokens": Role.OUTPUT,
        "total_tokens": Role.EVIDENCE,  # prompt + completion, by the query itself
        "prompt_cache_read_tokens": Role.CACHE_READ,
        "prompt_cache_write_tokens": Role.CACHE_WRITE,
        "prompt_cache_write_5m": Role.CACHE_WRITE_5M,
        "prompt_cache_write_1h": Role.CACHE_WRITE_1H,
        "prompt_audio_tokens": Role.INPUT_AUDIO,
        "completion_audio_tokens": Role.OUTPUT_AUDIO,
        "reasoning_tokens": Role.REASONING,
    },
    axes={
        Axis.INPUT_INCLUDES_CACHE: (False, True),
        Axis.OUTPUT_INCLUDES_REASONING: (True, False),
    },
    absent=HIDDEN_DETAILS,
)
