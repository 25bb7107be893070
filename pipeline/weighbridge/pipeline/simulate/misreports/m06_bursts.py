"""Few answers are billed at three and a half times their size."""

from __future__ import annotations

import numpy as np

from weighbridge.pipeline.simulate.answers import Answers, chosen, honest, rounded
from weighbridge.pipeline.simulate.misreport import Misreport

_MORE = 2.47


def _draw(rng: np.random.Generator, shape: tuple[int, int], factor: float) -> Answers:
    answers = honest(rng, shape)
    extra = rounded(rng, answers.observed * _MORE)
    return answers.billed(np.where(chosen(rng, shape, factor), extra, 0))


MISREPORT = Misreport(
    code="M6",
    title="rare bursts of +247 %",
    draw=_draw,
    factor=0.05,
    means="share of the answers that have one",
    expected="burst",
    verdict="suspected",
    rounding="stochastic: up or down by a seeded uniform draw, expectation exact",
)
