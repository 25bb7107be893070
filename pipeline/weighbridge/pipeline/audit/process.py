"""The e-process of a cell: what a bet against an honest provider has made of one unit of money, after every answer.

With T the clipped gap of an answer and m what is tolerated, the honest provider's promise is that T is at most m on
average, whatever came before. Each answer is bet on with a stake that only earlier answers decide:

    K = K (1 + stake (T - m))     stake = sum(T - m) / sum((T - m)^2) of the earlier ones, within [0, 0.75 / (1 + m)]

Under the promise K is a non-negative supermartingale, so it reaches 1/alpha ever, at any of any number of looks, with
a probability of at most alpha (Ville). The average over the scales is one too. The stake is the approximate growth
optimum of Waudby-Smith and Ramdas with one pseudo-observation at m. The mirrored process looks for what is missing.

Logarithms are added up, one answer after another and from the left, so a process that goes on from where it stood
comes to the very digits of one that was never interrupted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from weighbridge.pipeline.audit.scales import NAMES, Floats, Ints, scaled

BOLDEST = 0.75
_TINY = 1e-300


@dataclass(frozen=True, slots=True)
class Standing:
    """Where processes stand. The leading axes are theirs, the last one is that of the scales.

    Attributes:
        rows: answers so far.
        sums, squares: of the clipped gaps so far, per scale.
        over, under: logarithm of K per scale, for too much and for too little.
    """

    rows: Ints
    sums: Floats
    squares: Floats
    over: Floats
    under: Floats

    @classmethod
    def start(cls, shape: tuple[int, ...] = ()) -> Standing:
        """Before the first answer."""
        nothing = np.zeros((*shape, len(NAMES)))
        return cls(np.zeros(shape, np.int64), nothing, nothing, nothing, nothing)


@dataclass(frozen=True, slots=True)
class Course:
    """Processes after some more answers.

    Attributes:
        standing: where they stand now.
        over, under: logarithm of the averaged K after each of these answers.
    """

    standing: Standing
    over: Floats
    under: Floats


def advance(standing: Standing, gaps: Ints, sizes: Ints, over: Floats, under: Floats) -> Course:
    """Go on with some more answers, in the order of their arrival.

    Args:
        standing: where the processes stand.
        gaps, sizes: reported - observed and observed tokens; the last axis is time.
        over, under: the tolerated mean per scale, of what is too much and of what is too little; their last axis is
            that of the scales, the leading ones are those of the processes or none.
    """
    ends: dict[str, list[Floats]] = {name: [] for name in ("sums", "squares", "over", "under")}
    paths: dict[str, list[Floats]] = {"over": [], "under": []}
    for place, values in enumerate(scaled(gaps, sizes)):
        before = _Earlier.of(standing, place, values)
        ends["sums"].append(before.sums[..., -1] + values[..., -1] if values.shape[-1] else standing.sums[..., place])
        ends["squares"].append(
            before.squares[..., -1] + values[..., -1] ** 2 if values.shape[-1] else standing.squares[..., place]
        )
        for side, sign, tolerated in (("over", 1.0, over), ("under", -1.0, under)):
            log = before.wealth(values, sign, tolerated[..., place, None], getattr(standing, side)[..., place])
            ends[side].append(log[..., -1])
            paths[side].append(log[..., 1:])
    now = Standing(
        standing.rows + gaps.shape[-1],
        *(np.stack(ends[name], axis=-1) for name in ("sums", "squares", "over", "under")),
    )
    return Course(now, averaged(paths["over"]), averaged(paths["under"]))


def averaged(logs: list[Floats]) -> Floats:
    """The logarithm of the average of processes given by their logarithms."""
    out: Floats = np.logaddexp.reduce(np.stack(logs), axis=0) - np.log(len(logs))
    return out


@dataclass(frozen=True, slots=True)
class _Earlier:
    """What was known before each answer on one scale: how many there were, their sum, the sum of their squares."""

    rows: Floats
    sums: Floats
    squares: Floats

    @classmethod
    def of(cls, standing: Standing, place: int, values: Floats) -> _Earlier:
        rows = standing.rows[..., None].astype(np.float64) + np.arange(values.shape[-1], dtype=np.float64)
        sums = running(standing.sums[..., place], values)
        squares = running(standing.squares[..., place], values * values)
        return cls(rows, sums[..., :-1], squares[..., :-1])

    def wealth(self, values: Floats, sign: float, m: Floats, begin: Floats) -> Floats:
        """log K before the first and after each of the answers."""
        drift = sign * self.sums - self.rows * m
        spread = self.squares - 2.0 * m * sign * self.sums + self.rows * m * m
        stake = np.clip(drift / np.maximum(spread, _TINY), 0.0, BOLDEST / (1.0 + m))
        return running(begin, np.log1p(stake * (sign * values - m)))


def running(begin: Floats, steps: Floats) -> Floats:
    """Sums from the left, beginning with `begin`; one more item than there are steps."""
    return np.cumsum(np.concatenate([np.asarray(begin)[..., None], steps], axis=-1), axis=-1)
