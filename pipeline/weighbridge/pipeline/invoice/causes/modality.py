"""Tokens of sound, pictures or film are charged at the price of text.

The amount is what the calls of the cell cost where all their tokens are text, less what they cost as they are.

Worked example (text at 2 a million, audio at 40):

    audio tokens  expected  charged as text | modality
             100     0.004           0.0002 |  -0.0038
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import polars as pl

from weighbridge.pipeline.invoice.billing import Billing
from weighbridge.pipeline.invoice.cause import Cause, Variant
from weighbridge.pipeline.invoice.ledger import Ledger
from weighbridge.schemas.lattice import CROSSED_CELLS

_CELLS = tuple(str(cell.name) for cell in CROSSED_CELLS)


def _variants(ledger: Ledger) -> tuple[Variant, ...]:
    if not any((ledger.calls[name] > 0).any() for name in _CELLS):
        return ()
    return (Variant("charged_as_text", _as_text(ledger)),)


def _as_text(ledger: Ledger) -> Callable[[Billing], Billing]:
    nothing = [pl.lit(0, pl.Int64).alias(name) for name in _CELLS]
    return lambda billing: replace(billing, calls=ledger.reprice(billing.calls.with_columns(nothing)))


CAUSE = Cause(
    code="modality",
    title="Tokens of another modality charged at the price of text",
    order=90,
    cure="Ask which meter counts them; where they are charged as text for good, say so in the price book.",
    variants=_variants,
)
