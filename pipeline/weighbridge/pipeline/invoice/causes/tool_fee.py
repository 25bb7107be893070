"""Something is charged by use, beside tokens: a tool of the provider's, a request, storage.

Where the bill has a line for it and our answers say nothing of it, the line is all there is: its amount is that of the
cause, as far as answers did not lead to expect it. Where the bill has no such line, it may stand in those of tokens.

Worked example:

    line                    expected  charged | tool_fee
    web search, 3 calls            -     0.03 |     0.03
"""

from __future__ import annotations

from dataclasses import replace

from weighbridge.pipeline.invoice.cause import Cause, Variant
from weighbridge.pipeline.invoice.ledger import Ledger
from weighbridge.schemas.enumerations import LineKind


def _variants(ledger: Ledger) -> tuple[Variant, ...]:
    told = any(each.fees for each in ledger.calls)
    own_line = any(key.kind == LineKind.TOOL_FEE for key in ledger.charged)
    if not told or own_line or "token_class" in ledger.grouping.named:
        return ()
    return (Variant("inside_the_lines_of_tokens", lambda billing: replace(billing, fees_inside=True)),)


CAUSE = Cause(
    code="tool_fee",
    title="Charged by use, beside tokens",
    order=100,
    cure="Count the uses of tools in the answers, and give their price in the price book; then it is expected.",
    variants=_variants,
    kinds=(LineKind.TOOL_FEE, LineKind.REQUEST_FEE, LineKind.STORAGE),
)
