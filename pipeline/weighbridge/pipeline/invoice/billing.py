"""How a provider might have billed: a state of choices, and what each cell would then be charged.

The agreed way is the first state. A cause is a change of it (`cause.Variant`), changes follow one another in the
documented order, and what each adds to a cell is its part of the gap: so parts add up to the gap, whatever they are.

    calls that are charged > their prices > sum of the cell by day > currency > discounts > rounding
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import ROUND_DOWN, ROUND_HALF_EVEN, ROUND_HALF_UP, ROUND_UP, Decimal
from typing import NamedTuple

from weighbridge.pipeline.invoice.cells import Key
from weighbridge.pipeline.invoice.contract import Discount, Rounding
from weighbridge.pipeline.invoice.ours.bundle import Bundle
from weighbridge.pipeline.invoice.ours.clocks import ARRIVED
from weighbridge.pipeline.invoice.rates import PLACES, WIDE

MODES = {"half_even": ROUND_HALF_EVEN, "half_up": ROUND_HALF_UP, "up": ROUND_UP, "down": ROUND_DOWN}


class Figure(NamedTuple):
    """Tokens and money of a cell; null where not known."""

    tokens: int | None
    money: Decimal | None


class Sum(NamedTuple):
    """What the parts of a cell are told apart by: day, model, class and currency."""

    key: Key
    day: date
    model: str | None
    token_class: str | None
    currency: str | None


@dataclass(frozen=True, slots=True)
class Billing:
    """One way to bill.

    Attributes:
        calls: the calls in bundles, with the counts and amounts they are charged at.
        clock: by which moment a call lies in its period.
        failed, superseded: whether calls that failed, and tries that were followed by another, are charged.
        rates_on: of what day the rate of a currency is.
        discounts: what is taken off.
        rounding: how a cell is rounded.
        fees_inside: whether what is charged by use stands in the lines of tokens.
        added: cell -> what is added to it (tokens, money), in the currency of the bill, after discounts.
        cuts: what is taken out of cells (less than nothing) as not counted yet, and put into others as counted late.
        off_list: cell -> what its lines take off their own list price.
    """

    calls: tuple[Bundle, ...]
    clock: str = ARRIVED
    failed: bool = False
    superseded: bool = False
    rates_on: str = "charge_day"
    discounts: tuple[Discount, ...] = ()
    rounding: Rounding | None = None
    fees_inside: bool = False
    added: Mapping[Key, Figure] = field(default_factory=dict)
    cuts: tuple[tuple[Sum, int | None, Decimal | None], ...] = ()
    off_list: Mapping[Key, Decimal] = field(default_factory=dict)


class Part(NamedTuple):
    """A sum of a cell: of one day, model and class, in the currency of the prices."""

    key: Key
    day: date
    model: str | None
    token_class: str | None
    tokens: int | None
    money: Decimal | None
    currency: str | None


def discounted(part: Part, discounts: Iterable[Discount]) -> Decimal | None:
    """The money of a part after every discount that is for it, one after the other; rounded half-even to 18 places."""
    left = part.money
    for each in discounts:
        of_model = not each.models or part.model in each.models
        of_class = not each.classes or part.token_class in each.classes
        in_time = (each.first is None or each.first <= part.day) and (each.end is None or part.day < each.end)
        if left is not None and of_model and of_class and in_time:
            left = WIDE.multiply(left, 1 - each.fraction).quantize(PLACES, ROUND_HALF_EVEN, context=WIDE)
    return left


def rounded(paid: Decimal, how: Rounding) -> Decimal:
    """An amount to so many places, in the way that was agreed."""
    return paid.quantize(Decimal(1).scaleb(-how.places), MODES[how.mode], context=WIDE)
