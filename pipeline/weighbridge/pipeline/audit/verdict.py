"""May a cell be accused? Only where three things hold, and what is missing is said.

    the bet against an honest provider has reached 1/alpha        (`process`)
    the gap grows with the size, beyond what honest traffic shows (`slope`, and `ranks` without its approximation)
    the cell is calibrated                                        (`tolerance`)

Alpha is what is promised altogether: what calibration may be wrong by is taken off it before the bet is asked.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from weighbridge.pipeline.audit import ranks, slope
from weighbridge.pipeline.audit.evidence import Evidence, gathered
from weighbridge.pipeline.audit.labels import Label, label_of
from weighbridge.pipeline.audit.scales import Ints
from weighbridge.pipeline.audit.tolerance import ERROR, Tolerance
from weighbridge.pipeline.audit.weighings import Weighings
from weighbridge.schemas.enumerations import AuditMeasure, AuditVerdict
from weighbridge.schemas.errors import ConfigError

LEAST_ALPHA = 2 * ERROR
DECIDED = 20  # answers below which nothing is called clean


@dataclass(frozen=True, slots=True)
class Judged:
    """What is said of a cell.

    Attributes:
        verdict: the outcome.
        side: 1 too much, -1 too little, 0 neither.
        label: the cause; null where nothing was detected.
        evidence: what it rests on; null likewise.
        lower, upper: bounds of the slope; null where it was not looked at, or is undetermined.
        slope: at the last look; null likewise.
        lacking: what an accusation would take beside what is there.
    """

    verdict: AuditVerdict
    side: int = 0
    label: Label | None = None
    evidence: Evidence | None = None
    slope: float | None = None
    lower: float | None = None
    upper: float | None = None
    lacking: tuple[str, ...] = ()


def threshold(alpha: float) -> float:
    """The logarithm that a bet must reach for the promise alpha.

    Raises:
        ConfigError: calibration alone may be wrong by so much, or it is no probability.
    """
    if not LEAST_ALPHA <= alpha <= 0.5:
        raise ConfigError(
            f"alpha is {alpha:g}; from {LEAST_ALPHA:g} to 0.5 is allowed, for tolerances themselves are wrong with a "
            "probability of 0.001; name a larger one, such as 0.01"
        )
    return -math.log(alpha - ERROR)


def judged(weighed: Weighings, tolerance: Tolerance, over: float, under: float, alpha: float) -> Judged:
    """What is to be said of a cell whose bets have come to `over` and `under` at their highest.

    Args:
        weighed: the answers of the cell, all of them, in the order of their arrival.
        tolerance: what is tolerated in it.
        over, under: logarithm of the bets.
        alpha: promised chance of a false accusation.
    """
    line = threshold(alpha)
    side = 1 if over >= line else -1 if under >= line else 0
    if not side:
        quiet = AuditVerdict.CLEAN if tolerance.calibrated else AuditVerdict.NOT_CALIBRATED
        return Judged(AuditVerdict.UNDECIDED if weighed.rows < DECIDED else quiet)
    beyond = float(tolerance.steepest if side > 0 else -tolerance.flattest)
    grows = rises(side * weighed.gaps, weighed.sizes, alpha, beyond)
    evidence = gathered(weighed, side=side, variance=float(tolerance.variance), grows=grows)
    label = label_of(evidence, side)
    bounds = _bounds(side * weighed.gaps, weighed.sizes, alpha)
    if not tolerance.calibrated:
        return Judged(AuditVerdict.NOT_CALIBRATED, side, label, evidence, *bounds, lacking=("calibrated",))
    if label.constant and (label.code == "template_not_applied" or not grows):
        return Judged(AuditVerdict.CONVENTION, side, label, evidence, *bounds)
    if side < 0:
        return Judged(AuditVerdict.UNDERBILLED, side, label, evidence, *bounds)
    lacking = tuple(name for name, lacks in _lacks(evidence, label).items() if lacks)
    verdict = AuditVerdict.SUSPECTED if lacking else AuditVerdict.ACCUSED
    return Judged(verdict, side, label, evidence, *bounds, lacking=lacking)


def identity(weighed: Weighings, alpha: float) -> Judged:
    """What is to be said of answers that our own engine counted: any gap breaks the identity."""
    total = int(weighed.gaps.sum())
    if not weighed.gaps.any():
        return Judged(AuditVerdict.CLEAN if weighed.rows else AuditVerdict.UNDECIDED)
    side = 1 if total >= 0 else -1
    grows = rises(side * weighed.gaps, weighed.sizes, alpha, 0.0)
    evidence = gathered(weighed, side=side, variance=0.0, grows=grows)
    bounds = _bounds(side * weighed.gaps, weighed.sizes, alpha)
    return Judged(AuditVerdict.IDENTITY_BROKEN, side, label_of(evidence, side), evidence, *bounds)


def _lacks(found: Evidence, label: Label) -> dict[str, bool]:
    """What an accusation would still take. Size and gap may also have a prediction, or messages, in common."""
    return {
        "grows": not found.grows,
        "cause": not label.accuses,
        "hidden": found.measure is AuditMeasure.HIDDEN_REASONING,
        "messages": found.measure is AuditMeasure.INPUT and found.messages_known < 1.0,
    }


def rises(gaps: Ints, sizes: Ints, alpha: float, beyond: float) -> bool:
    """Whether any look finds the slope above what honest traffic shows, and the bet on ranks has come to 1/alpha."""
    seen = any(bool(look.lower > beyond) for look in slope.slopes(gaps, sizes, alpha))
    return seen and bool(ranks.wealth(gaps, sizes).max() >= -math.log(alpha))


def _bounds(gaps: Ints, sizes: Ints, alpha: float) -> tuple[float | None, float | None, float | None]:
    """The slope at the last look, with its bounds."""
    taken = slope.looks(len(gaps))
    if not taken:
        return None, None, None
    look = slope.slope_of(gaps[: taken[-1]], sizes[: taken[-1]], alpha * slope.share_of(len(taken)))
    if not np.isfinite(look.lower):
        return None, None, None
    return float(look.slope), float(look.lower), float(look.upper)
