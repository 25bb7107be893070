"""OpenAI Assistants: a run is one report, and its usage is there once the run is over.

The steps of a run carry usage too, and the run repeats their sum: the last one counts.
"""

from __future__ import annotations

from weighbridge.pipeline.ingest.dialect import Dialect
from weighbridge.pipeline.ingest.dialects import _openai

DIALECT = Dialect(
    name="openai_assistants",
    apis=("openai_assistants", "assistants", "threads.runs"),
    providers=("openai",),
    source="https://platform.openai.com/docs/api-reference/runs/object",
    containers=("usage",),
    roles=_openai.CHAT,
    axes=_openai.AXES,
    absent=_openai.absent(),
    open=True,
)
