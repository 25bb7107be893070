"""The provider really generates more, by holding end tokens back: every count is honest, and the bill is larger.

No count can show it. What it looks like from outside is an answer that is longer than is usual, which is what baselines
are for (`weighbridge baseline`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from weighbridge.pipeline.simulate.answers import Answers, exact, honest, rounded
from weighbridge.pipeline.simulate.misreport import Misreport


def _draw(rng: np.random.Generator, shape: tuple[int, int], factor: float) -> Answers:
    answers = honest(rng, shape)
    longer = rounded(rng, answers.observed * (factor - 1.0))
    served = answers.observed + longer
    return replace(exact(served), reported=answers.reported + longer, served=served)


MISREPORT = Misreport(
    code="M16",
    title="really generated more",
    draw=_draw,
    factor=2.0,
    means="times the length of an honest answer",
    expected=None,
    verdict="clean",
    rounding="stochastic: up or down by a seeded uniform draw, expectation exact",
)
