"""Some answers are billed above the limit of output tokens that was asked for.

As seen at a router: 18 of 400, the worst by 5,893 tokens.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from weighbridge.pipeline.simulate.answers import Answers, chosen, honest, rounded
from weighbridge.pipeline.simulate.misreport import Misreport

_LIMIT = 1_024


def _draw(rng: np.random.Generator, shape: tuple[int, int], factor: float) -> Answers:
    answers = honest(rng, shape)
    observed = np.minimum(answers.observed, _LIMIT)
    reported = np.minimum(answers.reported, _LIMIT)
    above = rounded(rng, np.minimum(np.exp(6.5 + rng.standard_normal(shape)), 5_893.0)) + 1
    over = chosen(rng, shape, factor)
    limit = np.full(shape, _LIMIT)
    return replace(answers, observed=observed, limit=limit, reported=np.where(over, _LIMIT + above, reported))


MISREPORT = Misreport(
    code="M8",
    title="billed above the limit",
    draw=_draw,
    factor=0.045,
    means="share of the answers that are",
    expected="over_cap",
    verdict="suspected",
    rounding="stochastic: up or down by a seeded uniform draw, expectation exact",
)
