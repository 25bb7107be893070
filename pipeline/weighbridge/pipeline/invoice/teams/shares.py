"""Whole amounts divided without a rest: the largest remainders get what rounding left.

Each part is its exact share cut down to the unit; what is then missing to the whole goes, a unit each, to the parts
that were cut by most, and of equals to the first by name. A negative whole is divided like its opposite. So parts add
up to the whole to the last unit, whatever the weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction

from weighbridge.schemas.errors import ConfigError

CENT = Decimal("0.01")
_WIDE = Context(prec=60)


def divided(whole: Decimal, weights: Mapping[str, Decimal | int], unit: Decimal = CENT) -> dict[str, Decimal]:
    """The parts of a whole, each a multiple of `unit`, except that the first by weight takes what is less than one.

    Args:
        whole: any amount.
        weights: name -> weight; none negative, at least one above zero.
        unit: the smallest part; a cent where nothing else is said.

    Raises:
        ConfigError: no weight is above zero, or one is below: nothing can be divided so.
    """
    total = sum((Fraction(weight) for weight in weights.values()), start=Fraction(0))
    if total <= 0 or any(weight < 0 for weight in weights.values()):
        raise ConfigError(
            f"{len(weights)} shares of which none is above zero, or one is below it, divide nothing; "
            "correct the shares, or divide by something that teams have"
        )
    if whole < 0:
        return {name: -part for name, part in divided(-whole, weights, unit).items()}
    units = int((whole / unit).to_integral_value(ROUND_FLOOR, context=_WIDE))
    rest = whole - units * unit
    exact = {name: Fraction(weight) * units / total for name, weight in weights.items()}
    cut = {name: share.numerator // share.denominator for name, share in exact.items()}
    missing = units - sum(cut.values())
    order = sorted(weights, key=lambda name: (cut[name] - exact[name], name))
    for name in order[:missing]:
        cut[name] += 1
    parts = {name: number * unit for name, number in cut.items()}
    first = min(weights, key=lambda name: (-Fraction(weights[name]), name))
    parts[first] += rest
    return parts
