"""OpenAI Chat Completions and the legacy completions: cached tokens inside the prompt, reasoning inside the completion.

    prompt 2,600, of it cached 2,000 and written 400   ->   uncached 200, cache_read 2,000, cache_write_unknown 400

A stream carries usage once, in its last chunk, and only where the caller asked for it; some servers repeat the running
totals in every chunk: the last one counts. Whoever speaks this API and is named nowhere is read by it too.
"""

from __future__ import annotations

from weighbridge.pipeline.ingest.dialect import Dialect, Stream
from weighbridge.pipeline.ingest.dialects import _openai

DIALECT = Dialect(
    name="openai_chat",
    apis=("openai_chat", "chat", "chat.completions", "openai_completions", "completions"),
    providers=("openai",),
    source="https://platform.openai.com/docs/api-reference/chat/object",
    containers=("usage", "x_groq.usage"),
    roles=_openai.CHAT,
    axes=_openai.AXES,
    absent=_openai.absent(),
    stream=Stream(finish=(("choices", "finish_reason"),)),
    open=True,
    rare=_openai.RARE,
    children=_openai.CHILDREN,
    breakdown=True,
)
