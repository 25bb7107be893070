"""A line of which nobody knows what it charges.

Its SKU says nothing that is known, or it names no model where the bill names models. The amount is the line.

Worked example:

    line (SKU)    expected  charged | unmapped_line
    something new        -     4.20 |          4.20
"""

from __future__ import annotations

from weighbridge.pipeline.invoice.cause import Cause

CAUSE = Cause(
    code="unmapped_line",
    title="A line of which nobody knows what it charges",
    order=150,
    cure="Say in the contract what its SKU charges, as [skus.<SKU>] kind, token_class and model, and reconcile again.",
    kinds=(None,),
)
