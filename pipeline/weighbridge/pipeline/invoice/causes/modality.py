"""Tokens of sound, pictures or film are charged at the price of text.

The amount is what the calls of the cell cost where all their tokens are text, less what they cost as they are.

Worked example (text at 2 a million, audio at 40):

    audio tokens  expected  charged as text | modality
             100     0.004           0.0002 |  -0.0038
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from weighbridge.pipeline.invoice.billing import Billing
from weighbridge.pipeline.invoice.cause import Cause, Variant
from weighbridge.pipeline.invoice.ledger import Ledger
from weighbridge.pipeline.invoice.ours.bundle import Bundle
from weighbridge.schemas.lattice import CROSSED_CELLS

_CELLS = tuple(str(cell.name) for cell in CROSSED_CELLS)


def _variants(ledger: Ledger) -> tuple[Variant, ...]:
    if not any(bundle.split for bundle in ledger.calls):
        return ()
    return (Variant("charged_as_text", _as_text(ledger)),)


def _as_text(ledger: Ledger) -> Callable[[Billing], Billing]:
    nothing = dict.fromkeys(_CELLS, 0)

    def charged(bundle: Bundle) -> Bundle:
        return ledger.pricing.priced(replace(bundle, cells=nothing)) if bundle.split else bundle

    return lambda billing: replace(billing, calls=tuple(charged(bundle) for bundle in billing.calls))


CAUSE = Cause(
    code="modality",
    title="Tokens of another modality charged at the price of text",
    order=90,
    cure="Ask which meter counts them; where they are charged as text for good, say so in the price book.",
    variants=_variants,
)
