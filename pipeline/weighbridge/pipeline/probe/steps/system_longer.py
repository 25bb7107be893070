"""More words in the system message: counted twice, they add twice as much."""

from __future__ import annotations

from weighbridge.pipeline.probe.ask import Feature, single
from weighbridge.pipeline.probe.step import Step

STEP = Step(
    name="system_longer",
    adds="more words in the system message",
    order=90,
    ask=lambda texts: single(texts.texts["plain"], system=texts.longer("system")),
    needs=frozenset({Feature.SYSTEM}),
    grows_by=("system", "system_longer", "plain", "longer"),
)
