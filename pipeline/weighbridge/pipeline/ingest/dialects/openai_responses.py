"""OpenAI Responses: as Chat Completions, with other names; a stream carries usage in its closing event.

Azure serves models of other makers through the same API, and those answer with the names of Chat Completions.
"""

from __future__ import annotations

from weighbridge.pipeline.ingest.dialect import Dialect, Stream
from weighbridge.pipeline.ingest.dialects import _openai
from weighbridge.schemas.enumerations import Ended

DIALECT = Dialect(
    name="openai_responses",
    apis=("openai_responses", "responses", "responses.compact", "other:/v1/responses/compact"),
    providers=("openai",),
    source="https://platform.openai.com/docs/api-reference/responses/object",
    containers=("usage", "response.usage"),
    roles={**_openai.CHAT, **_openai.RESPONSES},
    axes=_openai.AXES,
    absent=_openai.absent(),
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
    open=True,
)
