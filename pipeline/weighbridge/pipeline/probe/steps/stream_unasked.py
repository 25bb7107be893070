"""A stream without asking for usage: it may be left out; if it is there, it must be right."""

from __future__ import annotations

from weighbridge.pipeline.probe.ask import Feature, single
from weighbridge.pipeline.probe.step import Step

STEP = Step(
    name="stream_unasked",
    adds="a stream that asks for no usage",
    order=190,
    ask=lambda texts: single(texts.texts["plain"], stream=True, include_usage=False),
    needs=frozenset({Feature.USAGE_ON_REQUEST}),
    same_prompt=True,
    unasked=True,
)
