"""The same earlier turn once more: it must add as much as it added the first time."""

from __future__ import annotations

from weighbridge.pipeline.probe.ask import Ask, Feature, Turn
from weighbridge.pipeline.probe.prompts import Prompts
from weighbridge.pipeline.probe.step import Step


def _ask(texts: Prompts) -> Ask:
    asked, answered = Turn("user", texts.texts["asked"]), Turn("assistant", texts.texts["answered"])
    return Ask((asked, answered, asked, answered, Turn("user", texts.texts["plain"])))


STEP = Step(
    name="history_again",
    adds="the same question and answer once more",
    order=140,
    ask=_ask,
    needs=frozenset({Feature.HISTORY}),
    grows_by=("history", "history_again", "plain", "history"),
)
