"""Honest bills."""

from __future__ import annotations

import numpy as np

from weighbridge.pipeline.simulate.answers import Answers, honest
from weighbridge.pipeline.simulate.misreport import Misreport


def _draw(rng: np.random.Generator, shape: tuple[int, int], _factor: float) -> Answers:
    return honest(rng, shape)


MISREPORT = Misreport(
    code="M0",
    title="honest bills",
    draw=_draw,
    factor=0.0,
    means="nothing",
    expected=None,
    verdict="clean",
    rounding="none: whole tokens",
)
