"""From one day on another tokenizer counts: answers have 3 % more tokens, give or take two, each by its text.

The day comes after two fifths of the answers.
"""

from __future__ import annotations

import numpy as np

from weighbridge.pipeline.simulate.answers import Answers, honest, rounded
from weighbridge.pipeline.simulate.misreport import Misreport

_SCATTER = 0.02
_SINCE = 0.4


def _draw(rng: np.random.Generator, shape: tuple[int, int], factor: float) -> Answers:
    answers = honest(rng, shape)
    later = np.arange(shape[1]) >= int(_SINCE * shape[1])
    share = factor + _SCATTER * rng.standard_normal(shape)
    return answers.billed(np.where(later, rounded(rng, answers.observed * np.maximum(share, 0.0)), 0))


MISREPORT = Misreport(
    code="M13",
    title="another tokenizer from one day on",
    draw=_draw,
    factor=0.03,
    means="share of tokens that it counts more",
    expected="tokenizer_drift",
    verdict="suspected",
    rounding="stochastic: up or down by a seeded uniform draw, expectation exact",
)
