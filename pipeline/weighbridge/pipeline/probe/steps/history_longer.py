"""More words in the earlier question: sent twice, they add twice as much."""

from __future__ import annotations

from weighbridge.pipeline.probe.ask import Ask, Feature, Turn
from weighbridge.pipeline.probe.prompts import Prompts
from weighbridge.pipeline.probe.step import Step


def _ask(texts: Prompts) -> Ask:
    asked, answered = Turn("user", texts.longer("asked")), Turn("assistant", texts.texts["answered"])
    return Ask((asked, answered, Turn("user", texts.texts["plain"])))


STEP = Step(
    name="history_longer",
    adds="more words in the earlier question",
    order=130,
    ask=_ask,
    needs=frozenset({Feature.HISTORY}),
    grows_by=("history", "history_longer", "plain", "longer"),
)
