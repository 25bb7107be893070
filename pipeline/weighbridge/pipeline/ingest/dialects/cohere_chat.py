"""Cohere chat and generate: what is billed is read; what was processed, with the template nobody sees, stands beside.

    billed 33 and 22; processed 1,452 and 33, of it 144 from a cache   ->   input 33, output 22

The cache is one of processed tokens: more can come from it than is billed, and no billed token has a price for it.
"""

from __future__ import annotations

from weighbridge.pipeline.ingest.dialect import Absent, Dialect, Role, Stream
from weighbridge.pipeline.ingest.dialects import _absent
from weighbridge.pipeline.ingest.fact import Axis
from weighbridge.schemas.enumerations import Ended

# Version 2 keeps them in `usage`, version 1 in `meta`.
_CONTAINERS = ("usage", "delta.usage", "meta", "response.meta")
_COUNTED = {
    "billed_units.input_tokens": Role.INPUT,
    "billed_units.output_tokens": Role.OUTPUT,
    "billed_units.search_units": Role.EVIDENCE,
    "billed_units.classifications": Role.EVIDENCE,
    "tokens.input_tokens": Role.EVIDENCE,
    "tokens.output_tokens": Role.EVIDENCE,
    "cached_tokens": Role.EVIDENCE,
}

DIALECT = Dialect(
    name="cohere_chat",
    apis=("cohere_chat", "cohere_v2_chat", "cohere_v1_chat", "generate", "chat"),
    providers=("cohere",),
    source="https://docs.cohere.com/v2/docs/how-does-cohere-pricing-work",
    containers=_CONTAINERS,
    roles=_COUNTED,
    axes={Axis.INPUT_INCLUDES_CACHE: (True,), Axis.OUTPUT_INCLUDES_REASONING: (True,)},
    absent={"any": Absent(zero=_absent.UNCACHED)},
    stream=Stream(
        closing={"message-end": Ended.COMPLETE, "stream-end": Ended.COMPLETE},
        ending=frozenset({"is_finished"}),
        unclosed=Ended.CUT,
    ),
)
