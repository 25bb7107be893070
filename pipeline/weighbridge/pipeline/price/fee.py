"""What is charged by use beside tokens: searches, calls of tools, the request itself.

    a thousand searches cost 10, 3 were made      3 x 10 / 1000 = 0.03

A use without a price makes the amount unknown; a use that was not reported did not happen.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from weighbridge.pipeline.price.bounds import EXACT, counted, within
from weighbridge.schemas.enumerations import FeeKind, PriceStatus

_THOUSAND = Decimal(1000)
# The same request, by how much a search may bring into the context: a row has one price for each, an answer says which.
SIZED = (FeeKind.REQUEST_LOW, FeeKind.REQUEST_MEDIUM, FeeKind.REQUEST_HIGH)


def fees_of(fees: Mapping[FeeKind, Decimal], used: Mapping[str, int], *, whole: bool) -> Decimal | PriceStatus:
    """What the uses of a reading cost, or why that is not known.

    Args:
        fees: kind -> price of a thousand uses.
        used: kind -> how often it was used.
        whole: whether the reading is that of an attempt, which pays for the request, and not of one of its calls.

    Raises:
        SumError: a count or the sum is beyond what the lake holds.
    """
    if any(count < 0 for count in used.values()):
        return PriceStatus.CONTRADICTORY
    counts = {kind: counted(count, f"uses of {kind}") for kind, count in used.items() if count}
    if whole and FeeKind.REQUEST in fees:
        counts[FeeKind.REQUEST] = counts.get(FeeKind.REQUEST, 0) + 1
    prices: dict[str, Decimal] = {str(kind): price for kind, price in fees.items()}
    sized = {price for kind, price in fees.items() if kind in SIZED}
    if whole and sized and not any(kind in counts for kind in SIZED):
        if len(sized) > 1 or not all(kind in fees for kind in SIZED):
            return PriceStatus.FEE_UNPRICED
        counts[SIZED[0]] = 1
    total = Decimal(0)
    for kind, count in counts.items():
        if kind not in prices:
            return PriceStatus.FEE_UNPRICED
        total = EXACT.add(total, EXACT.divide(EXACT.multiply(Decimal(count), prices[kind]), _THOUSAND))
    return within(total, "fees of a reading")
