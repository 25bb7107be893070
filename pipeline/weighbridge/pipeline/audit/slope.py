"""Does the gap grow with the size? Then it is inflation; a gap that does not is a convention.

d = a + b C by least squares, with the interval of b that MacKinnon and White's HC3 gives: it holds where the scatter of
gaps depends on the size, and is wide where single sizes stand alone. Looks are taken at geometric numbers of answers,
the k-th at the level alpha 6 / (pi^2 k^2); all looks together keep alpha.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np

from weighbridge.pipeline.audit.quantiles import student_quantile
from weighbridge.pipeline.audit.scales import Floats, Ints

FIRST_LOOK = 8
GROWTH = 1.25
LEAST_SIZES = 8  # different sizes
MOST_LEVERAGE = 0.9  # an answer that decides the line by itself


@dataclass(frozen=True, slots=True)
class Slope:
    """Slopes at one look.

    Attributes:
        rows: answers looked at.
        intercept, slope: of the line.
        lower, upper: of the slope; infinite where it is undetermined, because too few sizes differ.
    """

    rows: int
    intercept: Floats
    slope: Floats
    lower: Floats
    upper: Floats


@cache
def looks(rows: int) -> tuple[int, ...]:
    """The numbers of answers at which is looked, up to `rows`."""
    out: list[int] = []
    number = float(FIRST_LOOK)
    while number <= rows:
        if not out or math.ceil(number) > out[-1]:
            out.append(math.ceil(number))
        number *= GROWTH
    return tuple(out)


def share_of(look: int) -> float:
    """The part of alpha that look number `look` (1, 2, ...) may spend."""
    return 6.0 / (math.pi * look) ** 2


def slopes(gaps: Ints, sizes: Ints, alpha: float) -> Iterator[Slope]:
    """The slope at every look.

    Args:
        gaps, sizes: reported - observed and observed tokens; the last axis is time.
        alpha: chance that any of the lower bounds lies above the true slope, and any of the upper ones below it.
    """
    for number, rows in enumerate(looks(gaps.shape[-1]), start=1):
        yield slope_of(gaps[..., :rows], sizes[..., :rows], alpha * share_of(number))


def slope_of(gaps: Ints, sizes: Ints, level: float) -> Slope:
    """The slope of these answers with a bound on either side, each wrong with the probability `level`."""
    rows = gaps.shape[-1]
    d, c = gaps.astype(np.float64), sizes.astype(np.float64)
    x = c - c.mean(axis=-1, keepdims=True)
    spread = np.square(x).sum(axis=-1)
    safe = np.maximum(spread, 1.0)
    slope = (x * d).sum(axis=-1) / safe
    intercept = d.mean(axis=-1) - slope * c.mean(axis=-1)
    leverage = 1.0 / rows + np.square(x) / safe[..., None]
    left = (d - intercept[..., None] - slope[..., None] * c) / np.maximum(1.0 - leverage, 1e-9)
    error = np.sqrt(np.square(x * left).sum(axis=-1)) / safe
    half = student_quantile(1.0 - level, rows - 2) * error
    known = (spread > 0) & (leverage.max(axis=-1) <= MOST_LEVERAGE) & (_distinct(sizes) >= LEAST_SIZES)
    return Slope(
        rows,
        intercept,
        slope,
        np.where(known, slope - half, -np.inf),
        np.where(known, slope + half, np.inf),
    )


def _distinct(sizes: Ints) -> Ints:
    ordered = np.sort(sizes, axis=-1)
    out: Ints = 1 + (np.diff(ordered, axis=-1) != 0).sum(axis=-1)
    return out
