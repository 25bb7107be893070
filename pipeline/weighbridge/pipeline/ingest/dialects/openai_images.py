"""OpenAI images: text and image tokens in; what comes out is itemised by newer models alone.

input 50 = text 10 + image 40, output 50   ->   how much of the output is image is not said: unknown
"""

from __future__ import annotations

from weighbridge.pipeline.ingest.dialect import Dialect, Role, Stream
from weighbridge.pipeline.ingest.dialects import _openai
from weighbridge.schemas.enumerations import Ended

DIALECT = Dialect(
    name="openai_images",
    apis=("openai_images", "images", "images.generations", "images.edits"),
    providers=("openai",),
    source="https://platform.openai.com/docs/api-reference/images/object",
    containers=("usage",),
    roles=_openai.RESPONSES,
    axes=_openai.AXES,
    absent=_openai.absent(unknown=frozenset({Role.OUTPUT_IMAGE})),
    stream=Stream(
        closing={"image_generation.completed": Ended.COMPLETE, "image_edit.completed": Ended.COMPLETE},
        unclosed=Ended.CUT,
    ),
    open=True,
)
