"""Characters of several code points and bytes."""

from __future__ import annotations

from weighbridge.pipeline.probe.ask import single
from weighbridge.pipeline.probe.step import Step

STEP = Step(
    name="emoji",
    adds="emoji and marks above letters",
    order=50,
    ask=lambda texts: single(texts.texts["emoji"]),
    text_only=True,
)
