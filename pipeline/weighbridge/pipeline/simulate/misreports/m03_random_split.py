"""Tokens are split here and there before they are counted; each is by a draw of its own."""

from __future__ import annotations

import numpy as np

from weighbridge.pipeline.simulate.answers import Answers, honest
from weighbridge.pipeline.simulate.misreport import Misreport


def _draw(rng: np.random.Generator, shape: tuple[int, int], factor: float) -> Answers:
    answers = honest(rng, shape)
    return answers.billed(rng.binomial(answers.observed, factor))


MISREPORT = Misreport(
    code="M3",
    title="tokens split at random",
    draw=_draw,
    factor=0.018,
    means="share of the tokens that are split",
    expected="random_split",
    verdict="accused",
    rounding="none: whole tokens",
)
