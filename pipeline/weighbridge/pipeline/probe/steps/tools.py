"""A tool beside the fixed prompt."""

from __future__ import annotations

from weighbridge.pipeline.probe.ask import Feature, single
from weighbridge.pipeline.probe.step import Step

STEP = Step(
    name="tools",
    adds="a tool",
    order=100,
    ask=lambda texts: single(texts.texts["plain"], tool=texts.texts["tool"]),
    needs=frozenset({Feature.TOOLS}),
)
