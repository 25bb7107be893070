"""Two answers to the fixed prompt: the input counts once, the output of both."""

from __future__ import annotations

from weighbridge.pipeline.probe.ask import Feature, single
from weighbridge.pipeline.probe.step import Step

STEP = Step(
    name="choices",
    adds="two answers",
    order=200,
    ask=lambda texts: single(texts.texts["plain"], choices=2),
    needs=frozenset({Feature.CHOICES}),
    same_prompt=True,
)
