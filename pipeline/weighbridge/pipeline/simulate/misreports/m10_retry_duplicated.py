"""The usage of answers that were asked for again is reported twice."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from weighbridge.pipeline.simulate.answers import Answers, chosen, honest
from weighbridge.pipeline.simulate.misreport import Misreport


def _draw(rng: np.random.Generator, shape: tuple[int, int], factor: float) -> Answers:
    answers = honest(rng, shape)
    again = np.where(chosen(rng, shape, factor), answers.reported, 0)
    return replace(answers.billed(again), repeated=again)


MISREPORT = Misreport(
    code="M10",
    title="usage reported twice on a retry",
    draw=_draw,
    factor=0.05,
    means="share of the answers that are",
    expected="retry_duplicated",
    verdict="suspected",
    rounding="none: whole tokens",
)
