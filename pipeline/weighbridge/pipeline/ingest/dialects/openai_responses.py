"""OpenAI Responses: as Chat Completions, with other names; a stream carries usage in its closing event.

Azure serves models of other makers through the same API, and those answer with the names of Chat Completions.
"""

from __future__ import annotations

from weighbridge.pipeline.ingest.dialect import Dialect, Role, Stream
from weighbridge.pipeline.ingest.dialects import _openai
from weighbridge.schemas.enumerations import Ended

DIALECT = Dialect(
    name="openai_responses",
    apis=("openai_responses", "responses"),
    providers=("openai", "azure"),
    source="https://platform.openai.com/docs/api-reference/responses/object",
    containers=("usage", "response.usage"),
    roles={
        "input_tokens": Role.INPUT,
        "output_tokens": Role.OUTPUT,
        **_openai.below("input_tokens_details", _openai.INPUT_DETAILS),
        **_openai.below("output_tokens_details", _openai.OUTPUT_DETAILS),
        **_openai.CHAT,
        "reasoning_tokens": Role.REASONING,
        "audio_prompt_tokens": Role.INPUT_AUDIO,
    },
    axes=_openai.AXES,
    absent=_openai.ABSENT,
    stream=Stream(
        closing={
            "response.completed": Ended.COMPLETE,
            "response.incomplete": Ended.COMPLETE,  # stopped at a limit: the count is final
            "response.failed": Ended.ERROR,
        },
        # Some third-party models on Azure stream the chunks of Chat Completions here.
        finish=(("choices", "finish_reason"),),
        unclosed=Ended.CUT,
    ),
)
