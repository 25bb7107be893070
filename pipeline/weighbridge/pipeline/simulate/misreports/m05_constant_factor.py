"""Every bill is larger by the same share."""

from __future__ import annotations

import numpy as np

from weighbridge.pipeline.simulate.answers import Answers, honest, rounded
from weighbridge.pipeline.simulate.misreport import Misreport


def _draw(rng: np.random.Generator, shape: tuple[int, int], factor: float) -> Answers:
    answers = honest(rng, shape)
    return answers.billed(rounded(rng, answers.observed * factor))


MISREPORT = Misreport(
    code="M5",
    title="a constant factor",
    draw=_draw,
    factor=0.0028,
    means="share that every bill is larger by",
    expected="constant_factor",
    verdict="accused",
    rounding="stochastic: up or down by a seeded uniform draw, expectation exact",
)
