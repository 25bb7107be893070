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
from weighbridge.pipeline.invoice.ours.bundle import Bundle
from weighbridge.pipeline.invoice.ours.prices import LONGEST, SHORTEST


def _variants(ledger: Ledger) -> tuple[Variant, ...]:
    ways = (("charged_as_above", LONGEST), ("charged_as_below", SHORTEST)) if ledger.by_length else ()
    return tuple(Variant(why, _as_long(ledger, length)) for why, length in ways)


def _as_long(ledger: Ledger, length: int) -> Callable[[Billing], Billing]:
    def charged(bundle: Bundle) -> Bundle:
        rows = ledger.pricing.serving([(bundle.provider, bundle.model)])
        # Where it lies is known, and is the same already, the price of that length is its own.
        there = bundle.length is not None and all(
            row.bracket_of(bundle.length) == row.bracket_of(length) for row in rows
        )
        same = there or all(len(row.brackets) == 1 for row in rows)
        return bundle if same else ledger.pricing.priced(replace(bundle, length=length))

    return lambda billing: replace(billing, calls=tuple(charged(bundle) for bundle in billing.calls))


CAUSE = Cause(
    code="price_tier",
    title="Charged at the price of another context length",
    order=80,
    cure="Hold the longest inputs against the threshold; ask what counts toward it, cached tokens above all.",
    variants=_variants,
)
