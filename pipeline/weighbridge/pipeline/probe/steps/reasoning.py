"""A question to think about, where the model reasons: reasoning is part of the output, once."""

from __future__ import annotations

from weighbridge.pipeline.probe.ask import Feature, single
from weighbridge.pipeline.probe.step import Step

STEP = Step(
    name="reasoning",
    adds="reasoning",
    order=210,
    ask=lambda texts: single(texts.texts["think"], think=True),
    needs=frozenset({Feature.REASONING}),
)
