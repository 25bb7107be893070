"""Chinese, of which versions of a tokenizer make different numbers of tokens."""

from __future__ import annotations

from weighbridge.pipeline.probe.ask import single
from weighbridge.pipeline.probe.step import Step

STEP = Step(
    name="chinese",
    adds="Chinese",
    order=40,
    ask=lambda texts: single(texts.texts["chinese"]),
    text_only=True,
)
