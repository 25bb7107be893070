"""Embeddings of Gemini and Vertex AI: the prompt is all there is, in `usageMetadata` or per prediction.

two predictions of 5 and 6 tokens   ->   input 11, output 0
"""

from __future__ import annotations

from weighbridge.pipeline.ingest.dialect import Absent, Dialect, Role, Stream
from weighbridge.pipeline.ingest.dialects import _absent
from weighbridge.pipeline.ingest.fact import Axis

_MODALITIES = ("TEXT", "DOCUMENT", "AUDIO", "IMAGE", "VIDEO")

DIALECT = Dialect(
    name="gemini_embeddings",
    apis=("gemini_embeddings", "embeddings", "embedContent", "vertex_predict"),
    providers=("google", "vertex"),
    source="https://ai.google.dev/api/embeddings",
    containers=("usageMetadata", ""),
    roles={
        "promptTokenCount": Role.INPUT,
        "totalTokenCount": Role.TOTAL,
        **{
            f"{details}[{modality}].tokenCount": Role(f"input_{modality.lower()}")
            for details in ("promptTokensDetails", "promptTokenDetails")
            for modality in _MODALITIES
        },
        "predictions[*].embeddings.statistics.token_count": Role.INPUT,
    },
    axes={Axis.INPUT_INCLUDES_CACHE: (True,), Axis.OUTPUT_INCLUDES_REASONING: (True,)},
    absent={"any": Absent(zero=_absent.NO_OUTPUT)},
    stream=Stream(),
)
