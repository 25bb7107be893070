"""More words of the same kind: what they add here they must add in every other place."""

from __future__ import annotations

from weighbridge.pipeline.probe.ask import single
from weighbridge.pipeline.probe.step import Step

STEP = Step(
    name="longer",
    adds="more words",
    order=20,
    ask=lambda texts: single(texts.longer("plain")),
    text_only=True,
)
