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

import polars as pl

from weighbridge.pipeline.invoice.billing import Billing
from weighbridge.pipeline.invoice.cause import Cause, Variant
from weighbridge.pipeline.invoice.ledger import Ledger

BATCH, DEFAULT = "batch", "default"
_SAME = {"standard": DEFAULT, "on_demand": DEFAULT, "auto": DEFAULT}


def _variants(ledger: Ledger) -> tuple[Variant, ...]:
    if "service_tier" not in ledger.calls.columns:
        return ()
    named = [tier for charged in ledger.charged.values() for tier in charged.tiers]
    told = [_SAME.get(tier, tier) for tier in (*named, *ledger.tiers)]
    served = ledger.calls.select("service_tier", "batch").unique().rows()
    usual = all(_SAME.get(tier, tier) in {None, DEFAULT} and not batch for tier, batch in served)
    tiers = list(dict.fromkeys((*told, *(() if usual else (DEFAULT,)))))
    # Nothing is charged on another tier where everything was served, and can only be charged, on the usual one.
    tiers = [tier for tier in tiers if not (usual and tier == DEFAULT)]
    return tuple(Variant(f"charged_as_{tier}", _served(ledger, tier)) for tier in tiers)


def _served(ledger: Ledger, tier: str) -> Callable[[Billing], Billing]:
    def apply(billing: Billing) -> Billing:
        terms = {
            "service_tier": pl.lit(DEFAULT if tier == BATCH else tier, pl.String),
            "batch": pl.lit(tier == BATCH),
        }
        return replace(billing, calls=ledger.reprice(billing.calls.with_columns(**terms)))

    return apply


CAUSE = Cause(
    code="service_tier",
    title="Charged at the price of another service tier",
    order=50,
    cure="Hold the tier in the answers against the one on the bill, and ask for the difference where they differ.",
    cures={"openai": "Set service_tier in the requests or in the project; `auto` takes the project's default."},
    variants=_variants,
)
