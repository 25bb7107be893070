"""Calls are charged at the price of another length of context than theirs.

The amount is what the calls of the cell cost where all of them lie above, or none lies above, the thresholds of their
prices, less what they cost by their own length.

Worked example (input at 2 a million, at 4 above 200,000 tokens):

    input of the call  expected  charged as above | price_tier
              150,000      0.30              0.60 |       0.30
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from weighbridge.pipeline.invoice.billing import Billing
from weighbridge.pipeline.invoice.cause import Cause, Variant
from weighbridge.pipeline.invoice.ledger import Ledger


def _variants(ledger: Ledger) -> tuple[Variant, ...]:
    return tuple(Variant(f"charged_{name}", _priced(ledger, name)) for name in ledger.lengths)


def _priced(ledger: Ledger, name: str) -> Callable[[Billing], Billing]:
    return lambda billing: replace(billing, calls=ledger.lengths[name](billing.calls))


CAUSE = Cause(
    code="price_tier",
    title="Charged at the price of another context length",
    order=80,
    cure="Hold the longest inputs against the threshold; ask what counts toward it, cached tokens above all.",
    variants=_variants,
)
