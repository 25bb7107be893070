"""Do longer answers have larger gaps? A bet on ranks, exact whatever the gaps are like.

The interval of the slope (`slope`) is an approximation: where gaps take two values, or one answer is ten times as long
as the others, it is too narrow more often than it says. This bet is not. If a gap has nothing to do with the size of
its answer (a convention, a mixture of conventions), then among the gaps so far each is equally likely to be the newest;
its place among them is uniform, and independent of all places before. So

    T = odd root of (place of the gap) x odd root of (place of the size)      both within [-1, 1]

is 0 on average, and the bet K = K (1 + stake T) reaches 1/alpha ever with a probability of at most alpha. Ties are
broken by a fixed sequence of draws, which the proof needs; the same answers give the same digits. Places are those
within a block of answers, so that the work does not grow with the square of their number.
"""

from __future__ import annotations

import numpy as np

from weighbridge.pipeline.audit.process import running
from weighbridge.pipeline.audit.scales import Floats, Ints

BLOCK = 250
_BOLDEST = 0.9
_SEED = 20_260_101
_TINY = 1e-300


def wealth(gaps: Ints, sizes: Ints) -> Floats:
    """The logarithm of the bet after each answer.

    Args:
        gaps, sizes: reported - observed and observed tokens; the last axis is time.
    """
    rows = gaps.shape[-1]
    draws = np.random.default_rng(_SEED).random(gaps.shape)
    middle = np.full(gaps.shape, 0.5)
    payoff = np.empty(gaps.shape)
    for begin in range(0, rows, BLOCK):
        part = np.s_[..., begin : begin + BLOCK]
        payoff[part] = _rooted(_placed(gaps[part], draws[part])) * _rooted(_placed(sizes[part], middle[part]))
    nothing = np.zeros(gaps.shape[:-1])
    drift = running(nothing, payoff)[..., :-1]
    spread = running(nothing, payoff * payoff)[..., :-1]
    stake = np.clip(drift / np.maximum(spread, _TINY), 0.0, _BOLDEST)
    return running(nothing, np.log1p(stake * payoff))[..., 1:]


def _placed(values: Ints, ties: Floats) -> Floats:
    """The place of each value among those up to it, within [-1, 1]."""
    rows = values.shape[-1]
    earlier = np.tril(np.ones((rows, rows), bool))
    here, there = values[..., :, None], values[..., None, :]
    smaller = ((there < here) & earlier).sum(axis=-1)
    equal = ((there == here) & earlier).sum(axis=-1)
    out: Floats = 2.0 * (smaller + ties * equal) / np.arange(1, rows + 1) - 1.0
    return out


def _rooted(place: Floats) -> Floats:
    out: Floats = np.sign(place) * np.sqrt(np.abs(place))
    return out
