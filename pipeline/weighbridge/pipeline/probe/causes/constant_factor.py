"""Every count is multiplied by one factor, and rounded.

15 becomes 17, 24 becomes 26 and 100 becomes 110: 1.1 times, rounded up     ->  +2, +2, +10
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import ceil, floor

from weighbridge.pipeline.probe.case import Case
from weighbridge.pipeline.probe.cause import Amount, Cause, Left

LEAST_SIZES = 3  # different counts that one factor must explain


def _factors(told: Sequence[Case]) -> Iterator[Amount]:
    """For each way to round, the amounts of a factor that every count allows; none where there is none."""
    sizes = [(case.expected, case.observed) for case in told if case.expected > 0 and case.observed is not None]
    if len({expected for expected, _ in sizes}) < LEAST_SIZES:
        return
    half = Fraction(1, 2)
    for low, high, rounded in ((0, 1, floor), (-1, 0, ceil), (-half, half, _nearest)):
        # Open at one end for two of the three: a factor strictly inside is taken, so the ends need not be told apart.
        least = max((observed + Fraction(low)) / expected for expected, observed in sizes)
        most = min((observed + Fraction(high)) / expected for expected, observed in sizes)
        factor = (least + most) / 2
        if least < most and not least <= 1 <= most:
            yield lambda case, factor=factor, rounded=rounded: rounded(factor * case.expected) - case.expected  # type: ignore[misc]


def _nearest(value: Fraction) -> int:
    return floor(value + Fraction(1, 2))


def _learn(left: Left) -> Sequence[Amount]:
    return list(_factors(left.told))


CAUSE = Cause(
    code="constant_factor",
    title="Every count is multiplied by one factor",
    cure="Ask the provider for the multiplier it applies, and price by counts without it.",
    order=81,
    learn=_learn,
)
