"""OpenAI batches: the usage of one request, in the names of the API it went through, or of a whole batch."""

from __future__ import annotations

from weighbridge.pipeline.ingest.dialect import Dialect
from weighbridge.pipeline.ingest.dialects import _openai

DIALECT = Dialect(
    name="openai_batches",
    apis=("openai_batches", "batches"),
    providers=("openai",),
    source="https://platform.openai.com/docs/api-reference/batch/object",
    containers=("usage", "response.body.usage"),
    roles={**_openai.CHAT, **_openai.RESPONSES},
    axes=_openai.AXES,
    absent=_openai.absent(),
    open=True,
)
