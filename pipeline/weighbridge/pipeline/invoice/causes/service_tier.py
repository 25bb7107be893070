"""Calls are charged at the price of another service tier than the one they were served on.

The amount is what all calls of the cell cost at that tier, less what they cost at theirs. Tiers that the lines of the
cell name come first; a batch job is a tier here.

Worked example (input at 2 a million, batch at 1):

    tokens  served on  expected  charged at | service_tier
       100      batch    0.0001      0.0002 |       0.0001
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from weighbridge.pipeline.invoice.billing import Billing
from weighbridge.pipeline.invoice.cause import Cause, Variant
from weighbridge.pipeline.invoice.cells import BATCH, DEFAULT, tier_of
from weighbridge.pipeline.invoice.ledger import Ledger
from weighbridge.pipeline.invoice.ours.bundle import Bundle

_SAME = {"standard": DEFAULT, "on_demand": DEFAULT, "auto": DEFAULT}


def _variants(ledger: Ledger) -> tuple[Variant, ...]:
    named = [tier for charged in ledger.charged.values() for tier in charged.tiers]
    told = [_SAME.get(tier, tier) for tier in (*named, *ledger.tiers)]
    usual = all(_SAME.get(each.service_tier or DEFAULT) == DEFAULT or each.service_tier in {None, DEFAULT}
                for each in ledger.calls) and not any(each.batch for each in ledger.calls)  # fmt: skip
    tiers = list(dict.fromkeys((*told, *(() if usual else (DEFAULT,)))))
    # Nothing is charged on another tier where everything was served, and can only be charged, on the usual one.
    tiers = [tier for tier in tiers if not (usual and tier == DEFAULT)]
    return tuple(Variant(f"charged_as_{tier}", _served(ledger, tier)) for tier in tiers)


def _served(ledger: Ledger, tier: str) -> Callable[[Billing], Billing]:
    told, batch = (DEFAULT if tier == BATCH else tier), tier == BATCH

    def charged(bundle: Bundle) -> Bundle:
        # Where nothing else was said it is the default tier already, and costs the same.
        same = tier_of(bundle.service_tier, bundle.batch) == tier
        return bundle if same else ledger.pricing.priced(replace(bundle, service_tier=told, batch=batch))

    return lambda billing: replace(billing, calls=tuple(charged(bundle) for bundle in billing.calls))


CAUSE = Cause(
    code="service_tier",
    title="Charged at the price of another service tier",
    order=50,
    cure="Hold the tier in the answers against the one on the bill, and ask for the difference where they differ.",
    cures={"openai": "Set service_tier in the requests or in the project; `auto` takes the project's default."},
    variants=_variants,
)
