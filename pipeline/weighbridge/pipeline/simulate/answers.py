"""Answers of one cell as arrays, honest ones first: what was served, what our side counted, what was billed.

A leading axis holds independent runs, the last one time. Lengths are lognormal (median 300 tokens, spread 0.9); an
honest recount differs from an honest bill as measured ones do: it agrees on 93.5 % of the answers, and is off by +1,
+2, -1 or -3 tokens on 4 %, 0.5 %, 1.5 % and 0.5 %.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weighbridge.pipeline.simulate.world import Ints, Mask

Amounts = NDArray[np.floating[Any]]

UNKNOWN = -1
MEDIAN, SPREAD = 300, 0.9
LIMIT = 16_384
_GAPS, _SHARES = (0, 1, 2, -1, -3), (0.935, 0.04, 0.005, 0.015, 0.005)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """Answers and their bills; every array has the shape (runs, answers).

    Attributes:
        measure: what is weighed: input, output, hidden_reasoning or uncached_input.
        observed: tokens our side counted; of hidden reasoning the visible tokens beside it.
        reported: tokens that were billed; of uncached input the prompt, and once more what was charged as fresh
            although the cache held it.
        served: tokens that were served in truth.
        messages: of the prompt.
        limit: of output tokens.
        repeated: of `reported`: what repeated reports add.
        rejected: drafted tokens that were thrown away; `UNKNOWN` where nobody drafts.
        missing: answers without any report.
        cached: of the observed input: what the cache held.
    """

    measure: str
    observed: Ints
    reported: Ints
    served: Ints
    messages: Ints
    limit: Ints
    repeated: Ints
    rejected: Ints
    missing: Mask
    cached: Ints

    @property
    def gaps(self) -> Ints:
        """reported - observed."""
        return self.reported - self.observed

    def billed(self, extra: Ints) -> Answers:
        """With so many tokens more on the bills."""
        return replace(self, reported=self.reported + extra)


def honest(rng: np.random.Generator, shape: tuple[int, int]) -> Answers:
    """Answers of an honest provider, as our side recounts them."""
    observed = np.maximum(1, np.rint(MEDIAN * np.exp(SPREAD * rng.standard_normal(shape)))).astype(np.int64)
    gap = rng.choice(np.array(_GAPS), p=_SHARES, size=shape)
    return exact(observed).billed(np.maximum(gap, 1 - observed))


def exact(observed: Ints, measure: str = "output") -> Answers:
    """Answers of which both sides count the same."""
    zero = np.zeros_like(observed)
    return Answers(
        measure=measure,
        observed=observed,
        reported=observed.copy(),
        served=observed.copy(),
        messages=np.ones_like(observed),
        limit=np.full_like(observed, LIMIT),
        repeated=zero,
        rejected=np.full_like(observed, UNKNOWN),
        missing=np.zeros(observed.shape, bool),
        cached=zero,
    )


def rounded(rng: np.random.Generator, amount: Amounts) -> Ints:
    """An amount of tokens as a whole number, up or down by a seeded uniform draw, so that its expectation is exact.

    0.28 % of a bill of 100 tokens is 0.28 tokens: one token with a probability of 28 %, none otherwise.
    """
    down = np.floor(amount)
    out: Ints = (down + (rng.random(amount.shape) < amount - down)).astype(np.int64)
    return out


def chosen(rng: np.random.Generator, shape: tuple[int, ...], share: float) -> Mask:
    """This share of the answers, each by a draw of its own."""
    out: Mask = rng.random(shape) < share
    return out
