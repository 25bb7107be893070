"""OpenAI Realtime: one usage per answer, in its `response.done`, itemised by modality; cached tokens inside.

    input 41 = text 14 + audio 27; output 164 = text 28 + audio 136; total 205

What the other side said is transcribed by a call of its own, with its own usage: tokens, or seconds and no token.
"""

from __future__ import annotations

from weighbridge.pipeline.ingest.dialect import Dialect, Stream
from weighbridge.pipeline.ingest.dialects import _openai
from weighbridge.schemas.enumerations import Ended

DIALECT = Dialect(
    name="openai_realtime",
    apis=("openai_realtime", "realtime"),
    providers=("openai",),
    source="https://platform.openai.com/docs/api-reference/realtime-server-events/response/done",
    containers=("usage", "response.usage"),
    roles=_openai.RESPONSES,
    axes=_openai.AXES,
    absent=_openai.absent(),
    stream=Stream(
        closing={
            "response.done": Ended.COMPLETE,
            "conversation.item.input_audio_transcription.completed": Ended.COMPLETE,
            "conversation.item.input_audio_transcription.failed": Ended.ERROR,
        },
        unclosed=Ended.CUT,
    ),
    open=True,
)
