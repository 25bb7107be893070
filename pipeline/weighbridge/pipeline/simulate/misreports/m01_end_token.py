"""Honest bills that count end tokens on about half of the answers: +0.6 tokens on average, flat in length."""

from __future__ import annotations

import numpy as np

from weighbridge.pipeline.simulate.answers import Answers, chosen, honest
from weighbridge.pipeline.simulate.misreport import Misreport

_SHARES = (0.5, 0.4, 0.1)


def _draw(rng: np.random.Generator, shape: tuple[int, int], factor: float) -> Answers:
    extra = rng.choice(np.array([0, 1, 2]), p=_SHARES, size=shape)
    return honest(rng, shape).billed(np.where(chosen(rng, shape, factor), extra, 0))


MISREPORT = Misreport(
    code="M1",
    title="honest bills that count end tokens",
    draw=_draw,
    factor=1.0,
    means="share of the answers of which the provider counts end tokens",
    expected=None,
    verdict="clean",
    rounding="none: whole tokens",
    honest=1.0,
)
