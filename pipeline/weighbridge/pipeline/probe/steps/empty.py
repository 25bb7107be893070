"""An empty message: what is counted is the template alone. Many servers refuse it, and it is left out."""

from __future__ import annotations

from weighbridge.pipeline.probe.ask import single
from weighbridge.pipeline.probe.step import Step

STEP = Step(
    name="empty",
    adds="nothing: an empty message",
    order=60,
    ask=lambda _: single(""),
    text_only=True,
)
