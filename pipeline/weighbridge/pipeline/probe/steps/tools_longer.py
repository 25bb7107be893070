"""More words in the description of the tool: not counted, they add nothing."""

from __future__ import annotations

from weighbridge.pipeline.probe.ask import Feature, single
from weighbridge.pipeline.probe.step import Step

STEP = Step(
    name="tools_longer",
    adds="more words in the description of the tool",
    order=110,
    ask=lambda texts: single(texts.texts["plain"], tool=texts.longer("tool")),
    needs=frozenset({Feature.TOOLS}),
    grows_by=("tools", "tools_longer", "plain", "longer"),
)
