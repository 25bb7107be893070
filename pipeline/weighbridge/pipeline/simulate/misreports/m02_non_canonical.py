"""Honest bills of models that emit tokens which a tokenizer would not have chosen, by language and temperature.

Measured shares of emitted tokens at temperature 1: 0.03 % in English to 5.2 % in Chinese; each makes an answer one
token longer than its recount. Every run is a language of its own; the factor multiplies the share, as temperature does
(0.1 at greedy decoding, 4 at 1.5).
"""

from __future__ import annotations

import numpy as np

from weighbridge.pipeline.simulate.answers import Answers, honest
from weighbridge.pipeline.simulate.misreport import Misreport

SHARES = (0.0003, 0.0008, 0.0035, 0.0121, 0.0406, 0.0520)


def _draw(rng: np.random.Generator, shape: tuple[int, int], factor: float) -> Answers:
    share = factor * rng.permutation(np.resize(np.array(SHARES), shape[0]))
    answers = honest(rng, shape)
    return answers.billed(rng.binomial(answers.observed, np.minimum(share, 1.0)[:, None]))


MISREPORT = Misreport(
    code="M2",
    title="honest bills with tokens no tokenizer would choose",
    draw=_draw,
    factor=1.0,
    means="times the measured share of such tokens",
    expected=None,
    verdict="clean",
    rounding="none: whole tokens",
    honest=1.0,
)
