"""What is tolerated: as much as honest traffic of the same cell was seen to differ, with a bound on the luck of it.

The bound on a clipped mean is found by betting too. A mean m is ruled out from above where a bet that the answers are
less than m on average has made 1/error of its money; the tolerance is the least mean that is ruled out together with
all above it. It holds for every distribution on [-1, 1] with that mean, if honest answers keep coming as they came.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from weighbridge.pipeline.audit.process import BOLDEST, running
from weighbridge.pipeline.audit.scales import NAMES, Floats, Ints, scaled
from weighbridge.pipeline.audit.slope import slope_of

# Chance that the tolerances of one side are too small, all scales together; it is part of the promised alpha.
ERROR = 0.001
LEAST_ROWS = 100
_STEPS, _HALVINGS = 44, 5
_TINY = 1e-300


@dataclass(frozen=True, slots=True)
class Tolerance:
    """What is tolerated in a cell. The last axis is that of the scales, the leading ones are those of the cells.

    Attributes:
        rows: answers it was learnt from.
        over, under: greatest tolerated mean of what is too much, and of what is too little, per scale.
        steepest, flattest: bounds of the slope on honest traffic: more than that is inflation, less is deflation.
        variance: of the gaps around their line, tokens squared.
    """

    rows: int
    over: Floats
    under: Floats
    steepest: Floats
    flattest: Floats
    variance: Floats

    @property
    def calibrated(self) -> bool:
        """Whether there is enough behind it to accuse anybody."""
        return self.rows >= LEAST_ROWS


def nothing_tolerated() -> Tolerance:
    """Of a cell that was never calibrated, and of identities: not a token more or less."""
    zero = np.zeros(())
    return Tolerance(0, np.zeros(len(NAMES)), np.zeros(len(NAMES)), zero, zero, zero)


def learnt(gaps: Ints, sizes: Ints) -> Tolerance:
    """The tolerance that honest traffic teaches.

    Args:
        gaps, sizes: of answers that are taken to be honest; the last axis is time.
    """
    rows = gaps.shape[-1]
    views = scaled(gaps, sizes)
    share = ERROR / len(NAMES)
    over = np.stack([greatest_mean(view, share) for view in views], axis=-1)
    under = np.stack([greatest_mean(-view, share) for view in views], axis=-1)
    line = slope_of(gaps, sizes, ERROR)
    # Where the sizes tell no slope, none is tolerated: what then grows with the size is not what was calibrated.
    known = np.isfinite(line.upper)
    left = gaps - line.intercept[..., None] - line.slope[..., None] * sizes
    return Tolerance(
        rows,
        over,
        under,
        np.where(known, np.maximum(line.upper, 0.0), 0.0),
        np.where(known, np.minimum(line.lower, 0.0), 0.0),
        np.square(left).mean(axis=-1),
    )


def greatest_mean(values: Floats, error: float) -> Floats:
    """An upper bound of the mean of values within [-1, 1] that is too small with a probability of at most `error`.

    Args:
        values: the last axis is time.
    """
    rows = values.shape[-1]
    mean = values.mean(axis=-1)
    out_at = math.log(1.0 / error)
    sums = running(np.zeros(mean.shape), values)[..., :-1]
    squares = running(np.zeros(mean.shape), values * values)[..., :-1]
    counts = np.arange(rows, dtype=np.float64)

    def ruled_out(m: Floats) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        at = m[..., None]
        drift = counts * at - sums
        spread = squares - 2.0 * at * sums + counts * at * at
        stake = np.clip(drift / np.maximum(spread, _TINY), 0.0, BOLDEST / np.maximum(1.0 - at, _TINY))
        wealth = running(np.zeros(mean.shape), np.log1p(stake * (at - values)))
        found: np.ndarray[tuple[int, ...], np.dtype[np.bool_]] = wealth.max(axis=-1) >= out_at
        return found

    # From the top down: the first mean that is not ruled out ends the search, whatever lies below it.
    low, high = np.ones(mean.shape), np.ones(mean.shape)
    searching = np.ones(mean.shape, bool)
    for step in range(1, _STEPS):
        m = mean + (1.0 - mean) * 2.0 ** (-step / 2)
        gone = searching & ruled_out(m)
        low = np.where(searching, m, low)
        high = np.where(gone, m, high)
        searching = gone
        if not searching.any():
            break
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        gone = ruled_out(middle)
        low, high = np.where(gone, low, middle), np.where(gone, middle, high)
    return high
