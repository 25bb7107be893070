"""An answer that is cut off: usage must say as many tokens as the limit."""

from __future__ import annotations

from weighbridge.pipeline.probe.ask import single
from weighbridge.pipeline.probe.step import Step

STEP = Step(
    name="cut",
    adds="a limit of one token",
    order=170,
    ask=lambda texts: single(texts.texts["plain"], max_tokens=1),
    same_prompt=True,
)
