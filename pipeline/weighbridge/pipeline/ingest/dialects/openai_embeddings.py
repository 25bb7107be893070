"""OpenAI embeddings: a prompt and a total, and nothing that was generated.

prompt 8, total 8   ->   input 8, output 0
"""

from __future__ import annotations

from weighbridge.pipeline.ingest.dialect import Dialect, Role
from weighbridge.pipeline.ingest.dialects import _openai

DIALECT = Dialect(
    name="openai_embeddings",
    apis=("openai_embeddings", "embeddings"),
    providers=("openai",),
    source="https://platform.openai.com/docs/api-reference/embeddings/object",
    containers=("usage",),
    roles=_openai.CHAT,
    axes=_openai.AXES,
    absent=_openai.absent(Role.OUTPUT),
    open=True,
)
