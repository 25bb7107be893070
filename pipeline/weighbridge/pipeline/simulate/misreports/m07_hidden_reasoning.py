"""Reasoning that nobody sees is billed at three and a half times what it was (+247 %), or at more.

Honest reasoning is as long as the visible answer on average, and scatters by a factor of two.
"""

from __future__ import annotations

import numpy as np

from weighbridge.pipeline.simulate.answers import Answers, exact, honest, rounded
from weighbridge.pipeline.simulate.misreport import Misreport
from weighbridge.pipeline.simulate.world import Ints

_SCATTER = 0.7


def _draw(rng: np.random.Generator, shape: tuple[int, int], factor: float) -> Answers:
    visible = honest(rng, shape).observed
    served = rounded(rng, visible * np.exp(_SCATTER * rng.standard_normal(shape) - _SCATTER**2 / 2))
    answers = exact(visible, "hidden_reasoning")
    inflated: Ints = served + rounded(rng, served * factor) - visible
    return answers.billed(inflated)


MISREPORT = Misreport(
    code="M7",
    title="hidden reasoning inflated",
    draw=_draw,
    factor=2.47,
    means="share that reasoning is larger by",
    expected="hidden_reasoning_inflation",
    verdict="suspected",
    rounding="stochastic: up or down by a seeded uniform draw, expectation exact",
    honest=0.0,
)
