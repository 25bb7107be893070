"""Writer chat: OpenAI's shape with the details in the singular; a model without details did not cache or reason.

prompt 40, completion 300, total 340   ->   input 40, output 300
"""

from __future__ import annotations

from weighbridge.pipeline.ingest.dialect import Dialect, Stream
from weighbridge.pipeline.ingest.dialects import _openai

DIALECT = Dialect(
    name="writer_chat",
    apis=("writer_chat", "other:/v1/chat", "chat", "openai_completions", "completions"),
    providers=("writer",),
    source="https://dev.writer.com/api-reference/completion-api/chat-completion",
    containers=("usage",),
    roles=_openai.CHAT,
    axes=_openai.AXES,
    absent=_openai.absent(),
    stream=Stream(finish=(("choices", "finish_reason"),)),
)
