"""An earlier turn before the fixed prompt."""

from __future__ import annotations

from weighbridge.pipeline.probe.ask import Ask, Feature, Turn
from weighbridge.pipeline.probe.prompts import Prompts
from weighbridge.pipeline.probe.step import Step


def _ask(texts: Prompts) -> Ask:
    asked, answered = Turn("user", texts.texts["asked"]), Turn("assistant", texts.texts["answered"])
    return Ask((asked, answered, Turn("user", texts.texts["plain"])))


STEP = Step(
    name="history",
    adds="an earlier question and its answer",
    order=120,
    ask=_ask,
    needs=frozenset({Feature.HISTORY}),
)
