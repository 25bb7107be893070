"""Drafts that were thrown away are billed: 301 to 655 tokens on some answers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from weighbridge.pipeline.simulate.answers import Answers, chosen, honest
from weighbridge.pipeline.simulate.misreport import Misreport


def _draw(rng: np.random.Generator, shape: tuple[int, int], factor: float) -> Answers:
    answers = honest(rng, shape)
    drafts = np.where(chosen(rng, shape, factor), rng.integers(301, 656, shape), 0)
    return replace(answers.billed(drafts), rejected=drafts)


MISREPORT = Misreport(
    code="M17",
    title="discarded drafts billed",
    draw=_draw,
    factor=0.1,
    means="share of the answers that have any",
    expected="discarded_drafts",
    verdict="suspected",
    rounding="none: whole tokens",
)
