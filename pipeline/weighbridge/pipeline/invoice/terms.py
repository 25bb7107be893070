"""What the contract says of a month as a whole, in one order: volume, commitment, minimum, credits.

    usage after discounts     what the cells of tokens and tools come to
    - volume                  of the part above each threshold its fraction, the highest threshold that is passed
    - commitment discount     off what draws on the commitment
    + shortfall               what of the commitment was not drawn
    + minimum                 what is missing to it
    - credits                 as far as there is something to pay, those that expire first before the others

Each is a line of its own on a bill, and is held against the lines of its kind. All of it is exact, rounded half-even
to 18 places where a fraction has more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_HALF_EVEN, Decimal

from weighbridge.pipeline.invoice.contract import Contract, Credit
from weighbridge.pipeline.invoice.rates import PLACES, WIDE
from weighbridge.schemas.enumerations import LineKind

_NOTHING = Decimal(0)
KINDS = (LineKind.DISCOUNT, LineKind.COMMITMENT, LineKind.MINIMUM, LineKind.CREDIT)


@dataclass(frozen=True, slots=True)
class Drawn:
    """What was taken from a credit, and what is left of it."""

    name: str
    used: Decimal
    left: Decimal


@dataclass(frozen=True, slots=True)
class MonthTerms:
    """What a month comes to.

    Attributes:
        usage: what the calls cost after discounts; null where a price is missing, and so is all that rests on it.
        lines: kind -> what lines of that kind are expected to come to; credits and discounts are negative.
        drawn: of the commitment, what usage drew; null where there is none.
        shortfall: of it, what was not drawn.
        credits: each credit that holds in the month.
        total: what is to pay.
    """

    usage: Decimal | None
    lines: Mapping[LineKind, Decimal | None]
    drawn: Decimal | None
    shortfall: Decimal | None
    credits: tuple[Drawn, ...]
    total: Decimal | None


def month_terms(
    contract: Contract, usage: Decimal | None, first: date, used: Mapping[str, Decimal | None]
) -> MonthTerms:
    """What a month comes to.

    Args:
        contract: what was agreed.
        usage: what its calls cost after discounts, in the currency of the contract.
        first: the first day of the month.
        used: name of a credit -> what earlier months took from it; null where that is not known.
    """
    if usage is None:
        return MonthTerms(None, dict.fromkeys(KINDS), None, None, (), None)
    discount = -volume(contract.volume, usage)
    left = usage + discount
    drawn = shortfall = None
    if contract.commitment is not None:
        amount, fraction = contract.commitment
        drawn = min(left, amount)
        off = _exact(drawn * fraction)
        discount -= off
        left -= off
        shortfall = amount - drawn
        left += shortfall
    missing = _NOTHING if contract.minimum is None else max(contract.minimum - left, _NOTHING)
    left += missing
    told = {name: took for name, took in used.items() if took is not None}
    held = [credit for credit in contract.credits if holds(credit, first)]
    known = all(credit.name in told or credit.name not in used for credit in held)
    drawn_from = tuple(_draw(held, left, told)) if known else ()
    paid = sum((each.used for each in drawn_from), start=_NOTHING) if known else None
    lines: dict[LineKind, Decimal | None] = {
        LineKind.DISCOUNT: discount,
        LineKind.COMMITMENT: shortfall or _NOTHING,
        LineKind.MINIMUM: missing,
        LineKind.CREDIT: None if paid is None else -paid,
    }
    return MonthTerms(usage, lines, drawn, shortfall, drawn_from, None if paid is None else left - paid)


def holds(credit: Credit, first: date) -> bool:
    """Whether a credit holds on the first day of a month."""
    return credit.first <= first and (credit.end is None or credit.end > first)


def taken(
    before: Mapping[str, Decimal | None], terms: MonthTerms, credits_: Sequence[Credit], first: date
) -> dict[str, Decimal | None]:
    """What a month adds to what earlier ones took from each credit; null for those it took nobody knows what from."""
    out = dict(before)
    of_month = {each.name: each.used for each in terms.credits}
    for credit in credits_:
        if holds(credit, first):
            so_far, more = out.get(credit.name, _NOTHING), of_month.get(credit.name)
            out[credit.name] = None if so_far is None or more is None else so_far + more
    return out


def volume(bands: Sequence[tuple[Decimal, Decimal]], usage: Decimal) -> Decimal:
    """What is taken off for volume: of the part between two thresholds the fraction of the lower one."""
    off, ends = _NOTHING, [above for above, _ in bands[1:]]
    for place, (above, fraction) in enumerate(bands):
        upper = min(usage, ends[place]) if place < len(ends) else usage
        if upper > above:
            off += _exact((upper - above) * fraction)
    return off


def _draw(credits_: Sequence[Credit], to_pay: Decimal, used: Mapping[str, Decimal]) -> list[Drawn]:
    """The credits of a month, used up in order of expiry, and never beyond the bill."""
    out = []
    for credit in credits_:
        balance = max(credit.amount - used.get(credit.name, _NOTHING), _NOTHING)
        taken = min(balance, max(to_pay, _NOTHING))
        to_pay -= taken
        out.append(Drawn(credit.name, taken, balance - taken))
    return out


def _exact(value: Decimal) -> Decimal:
    return value.quantize(PLACES, ROUND_HALF_EVEN, context=WIDE)
