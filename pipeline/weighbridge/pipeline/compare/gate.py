"""What decides whether a strategy is worse: measures with margins, a level, and how many pairs it takes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from weighbridge.pipeline.compare.bootstrap import RESAMPLES, Paired
from weighbridge.pipeline.compare.measure import BY_NAME, Measure
from weighbridge.schemas.errors import ConfigError

MARGIN: Final = 0.02
PAIRS: Final = 30
_MOST_RESAMPLES: Final = 100_000  # what more would tell is less than a digit of an interval
# The first that is known of all answers decides where nobody names another: what does not hang on length goes first.
PREFERRED: Final = ("agreement", "similarity")


@dataclass(frozen=True, slots=True)
class Gate:
    """What decides.

    Attributes:
        margins: measure -> loss that is tolerated, in its unit; empty: `PREFERRED`, and the score where there is one.
        level: of the intervals, two-sided.
        pairs: fewer are never judged.
        resamples, seed: of the bootstrap.
    """

    margins: Mapping[str, float] = field(default_factory=dict)
    level: float = 0.95
    pairs: int = PAIRS
    resamples: int = RESAMPLES
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse what cannot decide."""
        for name, margin in self.margins.items():
            measure = BY_NAME.get(name)
            if measure is None or not measure.better:
                able = ", ".join(each.name for each in BY_NAME.values() if each.better)
                raise ConfigError(f"gate: {name!r} is no measure that can decide; allowed are {able}")
            if not math.isfinite(margin) or margin <= 0 or (measure.share and margin >= 1):
                raise ConfigError(f"gate: the margin of {name} is {margin}; give the loss you tolerate, such as 0.02")
        if not 0.5 < self.level < 1:
            raise ConfigError(f"gate: level is {self.level}; give one between 0.5 and 1, such as 0.95")
        if type(self.resamples) is not int or not RESAMPLES <= self.resamples <= _MOST_RESAMPLES:
            raise ConfigError(
                f"gate: resamples is {self.resamples}; a whole number from {RESAMPLES} to {_MOST_RESAMPLES} is needed"
            )
        if self.pairs < 2:
            raise ConfigError(f"gate: pairs is {self.pairs}; at least 2 are needed, and {PAIRS} are usual")

    def of(self, known: frozenset[str]) -> Mapping[str, float]:
        """The measures that decide, of those that are known, with their margins.

        Raises:
            ConfigError: the gate names a measure that is not known.
        """
        if self.margins:
            lacking = sorted(set(self.margins) - known)
            if lacking:
                raise ConfigError(
                    f"gate: {lacking[0]} is not known of these answers; known are {', '.join(sorted(known))}"
                )
            return self.margins
        chosen = next((name for name in PREFERRED if name in known), None)
        names = ([] if chosen is None else [chosen]) + (["score"] if "score" in known else [])
        return dict.fromkeys(names, MARGIN)


def loss_of(measure: Measure, found: Paired) -> tuple[float | None, float | None, float | None]:
    """Loss by a measure, with its limits as they decide: what is worse is above zero, whichever way the measure points.

    What can be lost wholly may have been lost as often as so many pairs leave open; the upper limit is no less.
    """
    mean, (low, high) = found.mean, found.limits
    if measure.better > 0:
        # Taken from nought, so that no loss is not written as minus nothing.
        mean, low, high = (None if value is None else 0 - value for value in (mean, high, low))
    if mean is not None and high is not None and found.worst is not None:
        high = max(high, mean + found.worst * (1 - ((1 - found.level) / 2) ** (1 / found.clusters)))
    return mean, low, high


def p_worse(measure: Measure, found: Paired, margin: float) -> float | None:
    """Small: the loss is beyond the margin."""
    return found.p_beyond_below(-margin) if measure.better > 0 else found.p_beyond_above(margin)


def p_not_worse(measure: Measure, found: Paired, margin: float) -> float | None:
    """Small: the loss is inside the margin."""
    return found.p_not_below(-margin) if measure.better > 0 else found.p_not_above(margin)
