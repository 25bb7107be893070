"""Special tokens of several models, written out by a user: text for one server, tokens for another."""

from __future__ import annotations

from weighbridge.pipeline.probe.ask import single
from weighbridge.pipeline.probe.step import Step

STEP = Step(
    name="special_tokens",
    adds="special tokens, written out",
    order=70,
    ask=lambda texts: single(texts.texts["special"]),
    text_only=True,
)
