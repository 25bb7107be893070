"""What the cache held is charged as fresh input, on some of the answers that hit it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from weighbridge.pipeline.simulate.answers import Answers, chosen, exact, honest
from weighbridge.pipeline.simulate.misreport import Misreport


def _draw(rng: np.random.Generator, shape: tuple[int, int], factor: float) -> Answers:
    prompt = 4 * honest(rng, shape).observed
    hit = chosen(rng, shape, 0.5)
    cached = np.where(hit, rng.integers(1, 8, shape) * prompt // 10, 0)
    answers = replace(exact(prompt, "uncached_input"), cached=cached)
    return answers.billed(np.where(chosen(rng, shape, factor), cached, 0))


MISREPORT = Misreport(
    code="M9",
    title="cached tokens charged as fresh",
    draw=_draw,
    factor=0.5,
    means="share of the hits that are",
    expected="cached_as_fresh",
    verdict="suspected",
    rounding="none: whole tokens",
    honest=0.0,
    engine=True,
)
