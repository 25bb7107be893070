"""Some answers have no usage report."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from weighbridge.pipeline.simulate.answers import Answers, chosen, honest
from weighbridge.pipeline.simulate.misreport import Misreport


def _draw(rng: np.random.Generator, shape: tuple[int, int], factor: float) -> Answers:
    answers = honest(rng, shape)
    missing = chosen(rng, shape, factor)
    return replace(answers, missing=missing, reported=np.where(missing, 0, answers.reported))


MISREPORT = Misreport(
    code="M11",
    title="usage missing",
    draw=_draw,
    factor=0.05,
    means="share of the answers without a report",
    expected="usage_missing",
    verdict="underbilled",
    rounding="none: whole tokens",
)
