"""OpenAI transcription, translation and speech: tokens by modality, or a duration in seconds and no token at all.

input 26 = audio 26, output 9, total 35          seconds 37   ->   UNKNOWN, the seconds are kept
"""

from __future__ import annotations

from weighbridge.pipeline.ingest.dialect import Dialect, Stream
from weighbridge.pipeline.ingest.dialects import _openai
from weighbridge.schemas.enumerations import Ended

DIALECT = Dialect(
    name="openai_audio",
    apis=(
        "openai_audio",
        "audio",
        "audio.transcriptions",
        "audio.translations",
        "audio.speech",
        "transcriptions",
        "openai_transcription",
    ),
    providers=("openai",),
    source="https://platform.openai.com/docs/api-reference/audio/json-object",
    containers=("usage",),
    roles={**_openai.CHAT, **_openai.RESPONSES},
    axes=_openai.AXES,
    absent=_openai.absent(),
    stream=Stream(
        closing={"transcript.text.done": Ended.COMPLETE, "speech.audio.done": Ended.COMPLETE}, unclosed=Ended.CUT
    ),
    open=True,
)
