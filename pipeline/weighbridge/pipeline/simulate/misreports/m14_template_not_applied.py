"""The recount was made without the chat template: so many tokens less for every message."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from weighbridge.pipeline.simulate.answers import Answers, exact, honest, rounded
from weighbridge.pipeline.simulate.misreport import Misreport


def _draw(rng: np.random.Generator, shape: tuple[int, int], factor: float) -> Answers:
    messages = 1 + rng.poisson(4, shape)
    observed = messages * np.maximum(20, honest(rng, shape).observed // 4)
    answers = replace(exact(observed, "input"), messages=messages)
    return answers.billed(3 * (factor > 0) + rounded(rng, factor * messages))


MISREPORT = Misreport(
    code="M14",
    title="template not applied",
    draw=_draw,
    factor=4.0,
    means="tokens of the template for each message",
    expected="template_not_applied",
    verdict="convention",
    rounding="stochastic: up or down by a seeded uniform draw, expectation exact",
    honest=0.0,
)
