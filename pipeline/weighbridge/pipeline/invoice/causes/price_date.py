"""Calls are charged at the price of another day: the one before a change, or the one after it.

The amount is what the calls of the cell cost at the prices of that day, less what they cost at those of their own.

Worked example (input at 3 a million up to the 10th, at 2 from then on):

    call of    tokens  expected  charged at the price before | price_date
    the 12th      100    0.0002                       0.0003 |     0.0001
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date

from weighbridge.pipeline.invoice.billing import Billing
from weighbridge.pipeline.invoice.cause import Cause, Variant
from weighbridge.pipeline.invoice.ledger import Ledger
from weighbridge.pipeline.invoice.ours.bundle import Bundle


def _variants(ledger: Ledger) -> tuple[Variant, ...]:
    return tuple(Variant(f"prices_of_{day}", _as_of(ledger, day)) for day in ledger.turns)


def _as_of(ledger: Ledger, day: date) -> Callable[[Billing], Billing]:
    def charged(bundle: Bundle) -> Bundle:
        return bundle if bundle.day == day else ledger.pricing.priced(replace(bundle, day=day))

    return lambda billing: replace(billing, calls=tuple(charged(bundle) for bundle in billing.calls))


CAUSE = Cause(
    code="price_date",
    title="Charged at the prices of another day",
    order=70,
    cure="Hold the day of the change the provider announced against the price book; mend the one that is wrong.",
    variants=_variants,
)
