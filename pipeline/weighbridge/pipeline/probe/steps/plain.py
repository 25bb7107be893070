"""The fixed prompt, alone."""

from __future__ import annotations

from weighbridge.pipeline.probe.ask import single
from weighbridge.pipeline.probe.step import Step

STEP = Step(
    name="plain",
    adds="one message of a user",
    order=10,
    ask=lambda texts: single(texts.texts["plain"]),
    text_only=True,
    same_prompt=True,
)
