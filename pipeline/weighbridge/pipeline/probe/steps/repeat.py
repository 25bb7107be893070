"""The fixed prompt again: what is cached is still part of the input."""

from __future__ import annotations

from weighbridge.pipeline.probe.ask import single
from weighbridge.pipeline.probe.step import Step

STEP = Step(
    name="repeat",
    adds="nothing: the same again, for the cache",
    order=150,
    ask=lambda texts: single(texts.texts["plain"]),
    same_prompt=True,
    repeats=True,
)
