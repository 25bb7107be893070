"""Cache writes are charged at the price of another lifetime.

A write that lives five minutes costs less than one of an hour. The amount is what the writes of the cell cost at the
other lifetime, less what they cost at their own; where lines are by class, it leaves one cell and comes into the other.

Worked example (5 minutes at 2.5 a million, 1 hour at 4):

    written for  tokens  expected  charged as 1 hour | cache_lifetime
      5 minutes     100   0.00025             0.0004 |        0.00015
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from weighbridge.pipeline.invoice.billing import Billing
from weighbridge.pipeline.invoice.cause import Cause, Variant
from weighbridge.pipeline.invoice.ledger import Ledger
from weighbridge.pipeline.invoice.ours.bundle import Bundle
from weighbridge.schemas.enumerations import TokenClass

_SHORT, _LONG = str(TokenClass.CACHE_WRITE_5M), str(TokenClass.CACHE_WRITE_1H)


def _variants(ledger: Ledger) -> tuple[Variant, ...]:
    ways = (("charged_as_1h", _SHORT, _LONG), ("charged_as_5m", _LONG, _SHORT))
    return tuple(
        Variant(why, _lived(ledger, source, into))
        for why, source, into in ways
        if any(bundle.counts[source] for bundle in ledger.calls)
    )


def _lived(ledger: Ledger, source: str, into: str) -> Callable[[Billing], Billing]:
    def charged(bundle: Bundle) -> Bundle:
        written, others = bundle.counts[source], bundle.counts[into]
        if not written or others is None:
            return bundle
        return ledger.pricing.priced(replace(bundle, counts={**bundle.counts, source: 0, into: written + others}))

    return lambda billing: replace(billing, calls=tuple(charged(bundle) for bundle in billing.calls))


CAUSE = Cause(
    code="cache_lifetime",
    title="Cache writes charged at the price of another lifetime",
    order=60,
    cure="Set the lifetime of each cached part explicitly and hold the split in the answers against the bill.",
    cures={"anthropic": 'Set "ttl" in every cache_control; a part without one is written for five minutes.'},
    variants=_variants,
)
