"""How many pairs a margin takes, and what margin so many pairs can carry.

Two things ask for pairs. Where answers may be lost wholly, losses as frequent as the margin must have had the chance to
show: ln(tail) / ln(1 - margin) pairs. And the interval must be narrow enough: (z_tail + z_power)^2 (spread / margin)^2,
for a strategy that loses nothing to be told not worse in `POWER` of comparisons.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log
from statistics import NormalDist
from typing import Final

from weighbridge.pipeline.compare.bootstrap import Paired
from weighbridge.pipeline.compare.gate import MARGIN, PREFERRED, Gate
from weighbridge.pipeline.compare.measure import BY_NAME

POWER: Final = 0.8
_NORMAL: Final = NormalDist()
_MOST: Final = 10**9


@dataclass(frozen=True, slots=True)
class Need:
    """What a margin takes.

    Attributes:
        have: pairs there are.
        least: below which nothing is shown, whatever the answers are.
        pairs: that are needed with the spread they have.
        margin: the least these pairs can carry; null where even the widest is none.
        measure: of which it is told.
    """

    have: int
    least: int
    pairs: int
    margin: float | None
    measure: str


def least_pairs(margin: float, tail: float) -> int:
    """Pairs below which losses as frequent as the margin may never have shown, where answers may be lost wholly."""
    return ceil(log(tail) / log(1 - margin))


def least_margin(pairs: int, tail: float) -> float:
    """The margin so many pairs can carry at best, where answers may be lost wholly."""
    return float(1 - tail ** (1 / pairs)) if pairs else 1.0


def beforehand(gate: Gate, prompts: int, strategies: int) -> str | None:
    """What to know before a run: that so many prompts cannot carry the margin, whatever comes of it; null if they can.

    Args:
        gate: what will decide.
        prompts, strategies: how many.
    """
    tail = (1 - gate.level) / 2 / max(1, strategies)
    margins = {name: margin for name, margin in gate.margins.items() if BY_NAME[name].share}
    if not gate.margins:
        margins = {PREFERRED[0]: MARGIN}
    least = {name: max(gate.pairs, least_pairs(margin, tail)) for name, margin in margins.items()}
    name = max(least, key=least.__getitem__, default=None)
    if name is None or prompts >= least[name]:
        return None
    wider = least_margin(prompts, tail)
    which = "the strategy" if strategies == 1 else f"any of {strategies} strategies"
    able = f", or tolerate {wider + 0.005:.2f}" if prompts >= gate.pairs and wider < 0.99 else ""
    return (
        f"{prompts} prompts are too few to tell {which} not worse: a margin of "
        f"{margins[name]:g} ({name}) takes at least {least[name]} on which it acts, and more the more answers differ. "
        f"Give more prompts{able}; what is worse may show all the same."
    )


def need(measure: str, found: Paired, margin: float, tail: float, *, share: bool, least: int) -> Need:
    """What a margin takes with the spread these pairs have.

    Args:
        measure: its name.
        found: the differences, made to decide.
        margin: tolerated loss.
        tail: chance of a wrong "not worse".
        share: whether a pair can lose 1 at most.
        least: pairs below which nothing is judged.
    """
    whole = found.pairs / found.clusters if found.clusters else 1.0  # pairs of one cluster are one witness
    reach = (_NORMAL.inv_cdf(1 - tail) + _NORMAL.inv_cdf(POWER)) * found.ratios.error
    able = reach
    if share:
        least = max(least, ceil(least_pairs(margin, tail) * whole))
        able = max(able, least_margin(found.clusters, tail))
    carried = None if found.clusters < 2 or (share and able >= 1) else able
    return Need(found.pairs, least, min(max(least, ceil(found.pairs * (reach / margin) ** 2)), _MOST), carried, measure)
