"""Anthropic's messages usage report: sums of a period, each class of the input under a name of its own.

uncached 1,500, written 5m 500 and 1h 1,000, read 200, output 500   ->   input_total 3,200
"""

from __future__ import annotations

from weighbridge.pipeline.ingest.dialect import (
    CACHED_BY_MODALITY,
    INPUT_BY_MODALITY,
    OUTPUT_BY_MODALITY,
    TOOL_BY_MODALITY,
    Absent,
    Dialect,
    Role,
)
from weighbridge.pipeline.ingest.fact import Axis

DIALECT = Dialect(
    name="anthropic_usage",
    apis=("anthropic_usage", "anthropic_usage_messages"),
    providers=("anthropic",),
    source="https://platform.claude.com/docs/en/api/admin/usage_report/retrieve_messages",
    containers=("result",),
    roles={
        "uncached_input_tokens": Role.INPUT,
        "cache_read_input_tokens": Role.CACHE_READ,
        "cache_creation.ephemeral_5m_input_tokens": Role.CACHE_WRITE_5M,
        "cache_creation.ephemeral_1h_input_tokens": Role.CACHE_WRITE_1H,
        "output_tokens": Role.OUTPUT,
        "server_tool_use.web_search_requests": Role.EVIDENCE,
    },
    axes={Axis.INPUT_INCLUDES_CACHE: (False,), Axis.OUTPUT_INCLUDES_REASONING: (True,)},
    absent={
        "any": Absent(
            zero=frozenset(
                {
                    Role.TOOL_PROMPT,
                    *INPUT_BY_MODALITY,
                    *TOOL_BY_MODALITY,
                    *CACHED_BY_MODALITY,
                    *OUTPUT_BY_MODALITY,
                }
            )
        )
    },
)
