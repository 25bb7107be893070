"""Cohere embed, rerank and classify: billed input tokens, image tokens beside them, or units that are no tokens.

input 4, image tokens 260   ->   input 264, output 0;    search_units 1   ->   no token count
"""

from __future__ import annotations

from weighbridge.pipeline.ingest.dialect import Absent, Dialect, Role, Stream
from weighbridge.pipeline.ingest.dialects import _absent
from weighbridge.pipeline.ingest.fact import Axis

DIALECT = Dialect(
    name="cohere_embed",
    apis=("cohere_embed", "embeddings", "embed", "rerank", "classify"),
    providers=("cohere",),
    source="https://docs.cohere.com/reference/embed",
    containers=("meta", "usage"),
    roles={
        "billed_units.input_tokens": Role.INPUT,
        # Counted and priced apart from the input tokens.
        "billed_units.image_tokens": Role.TOOL_IMAGE,
        "billed_units.images": Role.EVIDENCE,
        "billed_units.search_units": Role.EVIDENCE,
        "billed_units.classifications": Role.EVIDENCE,
    },
    axes={Axis.INPUT_INCLUDES_CACHE: (True,), Axis.OUTPUT_INCLUDES_REASONING: (True,)},
    absent={"any": Absent(zero=_absent.NO_OUTPUT | {Role.INPUT})},
    stream=Stream(),
)
