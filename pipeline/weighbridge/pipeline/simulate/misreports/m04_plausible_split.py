"""Tokens are split where the model itself might have; where a split is not plausible, the truth is billed.

The published rates are 0.28 %, 1.8 % and 11.2 % of all tokens, at the thresholds 0.90, 0.95 and 0.99 of plausibility.
Three of five answers take the splits of all of them, so that the rate is that of all tokens.
"""

from __future__ import annotations

import numpy as np

from weighbridge.pipeline.simulate.answers import Answers, chosen, honest, rounded
from weighbridge.pipeline.simulate.misreport import Misreport

_TAKEN = 0.6


def _draw(rng: np.random.Generator, shape: tuple[int, int], factor: float) -> Answers:
    answers = honest(rng, shape)
    splits = rounded(rng, answers.observed * (factor / _TAKEN))
    return answers.billed(np.where(chosen(rng, shape, _TAKEN), splits, 0))


MISREPORT = Misreport(
    code="M4",
    title="plausible splits",
    draw=_draw,
    factor=0.018,
    means="share of all tokens that are added",
    expected="random_split",
    verdict="accused",
    rounding="stochastic: up or down by a seeded uniform draw, expectation exact",
)
