"""Behind a router some servers bill ten channel tokens less than others."""

from __future__ import annotations

import numpy as np

from weighbridge.pipeline.simulate.answers import Answers, chosen, exact, honest
from weighbridge.pipeline.simulate.misreport import Misreport

_CHANNEL = 10


def _draw(rng: np.random.Generator, shape: tuple[int, int], factor: float) -> Answers:
    answers = exact(honest(rng, shape).observed + _CHANNEL)
    fewer = np.where(chosen(rng, shape, factor), -_CHANNEL, 0)
    return answers.billed(fewer + rng.choice(np.array([0, 1]), p=(0.97, 0.03), size=shape))


MISREPORT = Misreport(
    code="M12",
    title="a router in front of two conventions",
    draw=_draw,
    factor=0.5,
    means="share of the answers that are billed ten tokens less",
    expected="router_mixture",
    verdict="convention",
    honest=0.0,
    rounding="none: whole tokens",
)
