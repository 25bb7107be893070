"""Gaps that stand at a few whole numbers: the mark of a convention (an end token, the tokens of a channel, a template).

gaps 1 1 1 1 2 1 1 1           ->  spikes {1}: a token per answer
gaps 0 -10 -10 0 -10 0         ->  spikes {-10, 0}: a router in front of two kinds of servers
gaps 4 7 1 12 9 3 ...          ->  none
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from weighbridge.pipeline.audit.scales import Ints, Mask
from weighbridge.pipeline.audit.weighings import UNKNOWN

LEAST_SHARE = 0.05  # of the answers, for a value to be a spike
MOST_SPIKES = 4
COVERED = 0.8  # of the answers that the spikes together hold
_LINE_SHARE = 0.75


@dataclass(frozen=True, slots=True)
class Spikes:
    """The values gaps stand at, rising, and the share of the answers that have one of them."""

    values: tuple[int, ...]
    share: float

    @property
    def clustered(self) -> bool:
        """Whether a few whole numbers tell nearly all gaps."""
        return 0 < len(self.values) <= MOST_SPIKES and self.share >= COVERED


def spikes(gaps: Ints) -> Spikes:
    """The spikes of these gaps."""
    if not len(gaps):
        return Spikes((), 0.0)
    values, counts = np.unique(gaps, return_counts=True)
    high = counts >= max(2, LEAST_SHARE * len(gaps))
    return Spikes(tuple(int(value) for value in values[high]), float(counts[high].sum() / len(gaps)))


@dataclass(frozen=True, slots=True)
class PerMessage:
    """A gap of `per_answer` + `per_message` x messages, and the share of the answers that have exactly that."""

    per_answer: int
    per_message: int
    share: float

    @property
    def holds(self) -> bool:
        """Whether it is a rule: most answers keep it, and messages matter."""
        return self.per_message != 0 and self.share >= _LINE_SHARE


def per_message(gaps: Ints, messages: Ints) -> PerMessage | None:
    """The line in whole numbers on which most answers lie; null where fewer than two numbers of messages are known."""
    known: Mask = messages != UNKNOWN
    gaps, messages = gaps[known], messages[known]
    numbers = np.unique(messages)
    if len(numbers) < 2:
        return None
    middles = np.array([np.median(gaps[messages == number]) for number in numbers])
    slope = round(float(np.median(np.diff(middles) / np.diff(numbers))))
    values, counts = np.unique(gaps - slope * messages, return_counts=True)
    at = int(np.argmax(counts))
    return PerMessage(int(values[at]), slope, float(counts[at] / len(gaps)))
