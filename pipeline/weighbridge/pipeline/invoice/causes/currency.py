"""The bill converts prices at the rate of another day than agreed.

The amount is what the cell costs at that rate, less what it costs at the agreed one.

Worked example (1 euro is 1.10 dollars on the day, 1.00 at the end of the month):

    dollars  agreed: the day's rate  charged at the month's end | currency
       1.10                     1.0                         1.1 |      0.1
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from weighbridge.pipeline.invoice.billing import Billing
from weighbridge.pipeline.invoice.cause import Cause, Variant
from weighbridge.pipeline.invoice.contract import ON
from weighbridge.pipeline.invoice.ledger import Ledger


def _variants(ledger: Ledger) -> tuple[Variant, ...]:
    priced = {each.currency for each in ledger.calls} - {None}
    if ledger.currency is None or not priced - {ledger.currency}:
        return ()
    other = [on for on in ON if on != ledger.contract.rates_on]
    return tuple(Variant(f"rate_of_{on}", _at(on)) for on in other)


def _at(on: str) -> Callable[[Billing], Billing]:
    return lambda billing: replace(billing, rates_on=on)


CAUSE = Cause(
    code="currency",
    title="Converted at the rate of another day",
    order=110,
    cure="Ask which day's rate the provider takes, and write it into the contract as rates.on.",
    variants=_variants,
)
