"""Voyage embeddings and rerank: one total, all of it input.

total 43   ->   input 43, output 0
"""

from __future__ import annotations

from weighbridge.pipeline.ingest.dialect import Absent, Dialect, Role, Stream
from weighbridge.pipeline.ingest.dialects import _absent
from weighbridge.pipeline.ingest.fact import Axis

DIALECT = Dialect(
    name="voyage_embeddings",
    apis=("voyage_embeddings", "embeddings", "rerank", "multimodal_embeddings"),
    providers=("voyage",),
    source="https://docs.voyageai.com/reference/embeddings-api",
    containers=("usage",),
    roles={"total_tokens": Role.TOTAL, "text_tokens": Role.EVIDENCE},
    axes={Axis.INPUT_INCLUDES_CACHE: (True,), Axis.OUTPUT_INCLUDES_REASONING: (True,)},
    absent={"any": Absent(zero=_absent.NO_OUTPUT)},
    stream=Stream(),
)
