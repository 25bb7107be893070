"""Ollama embeddings: the prompt is all there is; the older endpoint counts nothing.

prompt_eval_count 8   ->   input 8, output 0
"""

from __future__ import annotations

from weighbridge.pipeline.ingest.dialect import Absent, Dialect, Role, Stream
from weighbridge.pipeline.ingest.dialects import _absent
from weighbridge.pipeline.ingest.fact import Axis

DIALECT = Dialect(
    name="ollama_embed",
    apis=("ollama_embed", "embeddings", "embed"),
    providers=("ollama",),
    source="https://github.com/ollama/ollama/blob/main/docs/api.md#generate-embeddings",
    containers=("usage", ""),
    roles={"prompt_eval_count": Role.INPUT, "prompt_tokens": Role.INPUT, "total_tokens": Role.TOTAL},
    axes={Axis.INPUT_INCLUDES_CACHE: (True,), Axis.OUTPUT_INCLUDES_REASONING: (True,)},
    absent={"any": Absent(zero=_absent.NO_OUTPUT)},
    stream=Stream(),
)
