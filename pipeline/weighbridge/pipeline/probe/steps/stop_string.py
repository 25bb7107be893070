"""A stop string: what was computed behind it may be cut off, reported or not."""

from __future__ import annotations

from weighbridge.pipeline.probe.ask import Feature, single
from weighbridge.pipeline.probe.step import Step

STEP = Step(
    name="stop_string",
    adds="a stop string",
    order=160,
    ask=lambda texts: single(texts.texts["count"], stop=texts.texts["stop"]),
    needs=frozenset({Feature.STOP}),
    text_only=True,
)
