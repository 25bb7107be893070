"""Calls are charged whose reports contradict themselves, so that nobody can say what they cost.

They are counted, and are in no sum. Where nothing else explains a cell that has such calls, and what is left lies
between nothing and all that the numbers in their reports add up to, at the dearest price of their model, it may be
them: the amount is what is left, and the confidence is ambiguous, as it is not known to the token.

Worked example (a report says 40 in, 10 out and 60 in all; the dearest price is 10 a million):

    expected without it  charged  at most  contradictory_counts
                 0.0002   0.0005   0.0011                0.0003
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal

from weighbridge.pipeline.invoice.billing import Billing, Figure
from weighbridge.pipeline.invoice.cause import Cause
from weighbridge.pipeline.invoice.cells import Key
from weighbridge.pipeline.invoice.ledger import Ledger
from weighbridge.schemas.enumerations import LineKind

_NOTHING = Figure(0, Decimal(0))


def _closing(ledger: Ledger, billing: Billing, left: Mapping[Key, Figure]) -> Billing | None:
    given = ledger.predicted(billing)
    added = dict(billing.added)
    for key, target in left.items():
        calls = ledger.contradictory(key) if key.kind == LineKind.TOKENS else None
        if calls is None:
            continue
        ours = given.get(key, _NOTHING)
        tokens = None if target.tokens is None or ours.tokens is None else target.tokens - ours.tokens
        money = None if target.money is None or ours.money is None else target.money - ours.money
        if _within(tokens, calls.tokens) and _within(money, calls.money) and (tokens or money):
            added[key] = Figure(tokens or 0, money)
    return replace(billing, added=added) if added != billing.added else None


def _within(found: int | Decimal | None, most: int | Decimal | None) -> bool:
    """Whether what is left lies within the limits; what a side does not know limits nothing."""
    return found is None or most is None or 0 <= found <= most


CAUSE = Cause(
    code="contradictory_counts",
    title="Calls whose counts contradict each other",
    order=135,
    cure="Look at the reports of these calls with `weighbridge readings explain`, and ask the provider what it counts.",
    closing=_closing,
    last=True,
    sure=False,
)
