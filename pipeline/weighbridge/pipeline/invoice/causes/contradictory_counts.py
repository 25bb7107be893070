"""Calls are charged whose reports contradict themselves, so that nobody can say what they cost.

They are counted, and are in no sum. Where nothing else explains a cell that has such calls, and what is left lies
between nothing and all that the numbers in their reports add up to, at the dearest price of their model, it may be
them: the amount is what is left, and the confidence is ambiguous, as it is not known to the token. Where a limit is not
known (a report without numbers, a model without a price), nobody can say so.

Worked example (a report says 40 in, 10 out and 60 in all; the dearest price is 10 a million):

    expected without it  charged  at most  contradictory_counts
                 0.0002   0.0005   0.0011                0.0003
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

from weighbridge.pipeline.invoice.billing import Billing, Figure
from weighbridge.pipeline.invoice.cause import Cause
from weighbridge.pipeline.invoice.cells import Key
from weighbridge.pipeline.invoice.ledger import Ledger
from weighbridge.pipeline.invoice.sides import Spoiled
from weighbridge.pipeline.invoice.zones import day_of, last_day_of
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
        most = _most(ledger, billing, key, calls)
        if _within(tokens, calls.tokens) and _within(money, most) and (tokens or money):
            added[key] = Figure(tokens or 0, money)
    return replace(billing, added=added) if added != billing.added else None


def _most(ledger: Ledger, billing: Billing, key: Key, calls: Spoiled) -> Decimal | None:
    """What the calls of a cell cost at most in the currency of the bill, at its dearest rate; null where not known."""
    if calls.money is None or calls.currency is None or calls.currency == ledger.currency:
        return calls.money
    zone, found = ledger.contract.zone, Decimal(0)
    first, last = day_of(key.start, zone), last_day_of(key.start, key.end, zone)
    for number in range((last - first).days + 1):
        paid = ledger.in_currency(key, first + timedelta(days=number), calls.money, calls.currency, billing)
        if paid is None:
            return None
        found = max(found, paid)
    return found


def _within(found: int | Decimal | None, most: int | Decimal | None) -> bool:
    """Whether what is left lies within the limits; what is left of a side without a known limit may be anything."""
    return found is None or (most is not None and 0 <= found <= most)


CAUSE = Cause(
    code="contradictory_counts",
    title="Calls whose counts contradict each other",
    order=135,
    cure="Look at the reports of these calls with `weighbridge explain` and the id of the cell, and ask the provider "
    "what it counts.",
    closing=_closing,
    last=True,
    sure=False,
)
