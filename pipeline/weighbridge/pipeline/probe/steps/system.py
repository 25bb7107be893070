"""A system message beside the fixed prompt."""

from __future__ import annotations

from weighbridge.pipeline.probe.ask import Feature, single
from weighbridge.pipeline.probe.step import Step

STEP = Step(
    name="system",
    adds="a system message",
    order=80,
    ask=lambda texts: single(texts.texts["plain"], system=texts.texts["system"]),
    needs=frozenset({Feature.SYSTEM}),
)
