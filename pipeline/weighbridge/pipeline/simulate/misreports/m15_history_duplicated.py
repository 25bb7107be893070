"""The history of a conversation is billed twice: the input of a conversation grows quadratically, and so does this."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from weighbridge.pipeline.simulate.answers import Answers, exact, honest, rounded
from weighbridge.pipeline.simulate.misreport import Misreport
from weighbridge.pipeline.simulate.world import Ints

_TURNS = 8


def _before(said: Ints) -> Ints:
    """What was said before each turn of one conversation; the last conversation may be cut off."""
    out = np.zeros((said.shape[0], _TURNS), np.int64)
    out[:, 1 : said.shape[1]] = np.cumsum(said, axis=1)[:, :-1]
    return out


def _draw(rng: np.random.Generator, shape: tuple[int, int], factor: float) -> Answers:
    turns = 1 + np.arange(shape[1]) % _TURNS
    said = np.maximum(5, honest(rng, shape).observed // 4)
    history = np.stack([_before(said[:, first : first + _TURNS]) for first in range(0, shape[1], _TURNS)], axis=1)
    flat = history.reshape(shape[0], -1)[:, : shape[1]]
    answers = replace(exact(flat + said, "input"), messages=np.broadcast_to(2 * turns - 1, shape).copy())
    return answers.billed(rounded(rng, factor * flat))


MISREPORT = Misreport(
    code="M15",
    title="history billed twice",
    draw=_draw,
    factor=1.0,
    means="share of the history that is",
    expected="history_duplicated",
    verdict="accused",
    rounding="stochastic: up or down by a seeded uniform draw, expectation exact",
    honest=0.0,
)
