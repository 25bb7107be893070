"""Many runs of an audit at once, for a benchmark: what would have been said of each, and after how many answers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from weighbridge.pipeline.audit import ranks, slope
from weighbridge.pipeline.audit.process import Standing, advance
from weighbridge.pipeline.audit.scales import Floats, Ints
from weighbridge.pipeline.audit.tolerance import Tolerance
from weighbridge.pipeline.audit.verdict import threshold

NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class Trial:
    """Runs of one kind.

    Attributes:
        over, under: logarithm of the bets of each run at their highest.
        detected: after how many answers a run's bet passed the threshold of either side; `NEVER` where it did not.
        accused: after how many answers all that an accusation takes was there, the cause left aside; likewise.
    """

    over: Floats
    under: Floats
    detected: Ints
    accused: Ints


def tried(gaps: Ints, sizes: Ints, tolerance: Tolerance, alpha: float) -> Trial:
    """Audit runs of the shape (runs, answers), each with its own tolerance or all with one."""
    line = threshold(alpha)
    course = advance(Standing.start(gaps.shape[:-1]), gaps, sizes, tolerance.over, tolerance.under)
    too_much, too_little = first(course.over >= line), first(course.under >= line)
    rising = np.full(gaps.shape[:-1], NEVER)
    for look in slope.slopes(gaps, sizes, alpha):
        found = (rising == NEVER) & (look.lower > tolerance.steepest)
        rising = np.where(found, look.rows, rising)
    told = first(ranks.wealth(gaps, sizes) >= -np.log(alpha))
    return Trial(
        course.over.max(axis=-1),
        course.under.max(axis=-1),
        np.minimum(too_much, too_little),
        np.maximum(np.maximum(too_much, rising), told),
    )


def first(reached: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> Ints:
    """After how many answers it was reached."""
    return np.where(reached.any(axis=-1), reached.argmax(axis=-1) + 1, NEVER)
