"""Line breaks, blanks, digits and signs, which tokenizers cut differently."""

from __future__ import annotations

from weighbridge.pipeline.probe.ask import single
from weighbridge.pipeline.probe.step import Step

STEP = Step(
    name="code",
    adds="line breaks, digits and signs",
    order=30,
    ask=lambda texts: single(texts.texts["code"]),
    text_only=True,
)
