"""The bill rounds: lines, or days, to so many places.

The amount is the rounded figure less the exact one. A line that is nothing but rounding says so itself.

Worked example (two places, half even):

    expected  charged | rounding
      1.2378     1.24 |   0.0022
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

from weighbridge.pipeline.invoice.billing import Billing, Figure, rounded
from weighbridge.pipeline.invoice.cause import Cause
from weighbridge.pipeline.invoice.cells import Key
from weighbridge.pipeline.invoice.contract import MODES, Rounding
from weighbridge.pipeline.invoice.ledger import Ledger
from weighbridge.schemas.enumerations import LineKind, Severity

PLACES = (2, 4, 6, 8)
# A day has up to 25 hours.
_DAY = timedelta(hours=25)


def _closing(ledger: Ledger, billing: Billing, left: Mapping[Key, Figure]) -> Billing | None:
    """The one way to round that gives what was charged in most cells; null where none gives it in any."""
    if ledger.contract.rounding is not None or ledger.currency is None or billing.rounding is not None:
        return None
    exact = ledger.predicted(billing)
    ways = [Rounding(places, mode) for places in PLACES for mode in MODES]
    tried = [(way, _fitting(left, exact, way)) for way in ways]
    if any(key.end - key.start > _DAY for key in left) and not any(cells for _, cells in tried):
        days = [replace(way, per="day") for way in ways]
        given = ((way, ledger.predicted(replace(billing, rounding=way))) for way in days)
        tried = [(way, sum(figures.get(k) == target for k, target in left.items())) for way, figures in given]
    way, cells = max(tried, key=lambda each: each[1])
    return replace(billing, rounding=way) if cells else None


def _fitting(left: Mapping[Key, Figure], exact: Mapping[Key, Figure], way: Rounding) -> int:
    """In how many cells rounding changes something, and gives what was charged."""
    pairs = [(exact[key].money, target.money) for key, target in left.items() if key in exact]
    return sum(a is not None and b is not None and a != b and rounded(a, way) == b for a, b in pairs)


CAUSE = Cause(
    code="rounding",
    title="Rounded",
    order=130,
    cure="Write the provider's rounding into the contract as [rounding]; then it is expected.",
    closing=_closing,
    whole_bill=True,
    kinds=(LineKind.ROUNDING,),
    severity=Severity.INFO,
    at_stake=False,
)
