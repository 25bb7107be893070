"""The fixed prompt as a stream: the same input, and usage at its end."""

from __future__ import annotations

from weighbridge.pipeline.probe.ask import single
from weighbridge.pipeline.probe.step import Step

STEP = Step(
    name="stream",
    adds="a stream with usage",
    order=180,
    ask=lambda texts: single(texts.texts["plain"], stream=True),
    same_prompt=True,
)
