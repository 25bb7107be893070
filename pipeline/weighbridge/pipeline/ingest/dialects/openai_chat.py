"""OpenAI Chat Completions: cached tokens inside the prompt, reasoning inside the completion.

    prompt 2,600, of it cached 2,000 and written 400   ->   uncached 200, cache_read 2,000, cache_write_unknown 400

A stream carries usage once, in its last chunk, and only where the caller asked for it.
"""

from __future__ import annotations

from weighbridge.pipeline.ingest.dialect import Dialect, Role, Stream
from weighbridge.pipeline.ingest.dialects import _openai

DIALECT = Dialect(
    name="openai_chat",
    apis=("openai_chat", "chat", "chat.completions"),
    providers=("openai", "azure"),
    source="https://platform.openai.com/docs/api-reference/chat/object",
    containers=("usage",),
    # A transcription answers in seconds: they are kept, and there are no tokens to read.
    roles={**_openai.CHAT, "seconds": Role.EVIDENCE, "type": Role.EVIDENCE},
    axes=_openai.AXES,
    absent=_openai.ABSENT,
    stream=Stream(finish=(("choices", "finish_reason"),)),
)
