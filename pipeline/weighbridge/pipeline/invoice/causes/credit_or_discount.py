"""A credit, a discount or a commitment stands on the bill, or is missing from it.

Lines that are credits, discounts, commitments or minimums are compared with what the contract says of the month; what
is left of them is this cause, as the line says so. In lines of tokens, it is what they take off their own list price,
or the agreed discount that they do not take.

Worked example (10 % agreed):

    list  expected  charged | credit_or_discount
    1.00      0.90     1.00 |               0.10
"""

from __future__ import annotations

from dataclasses import replace

from weighbridge.pipeline.invoice.billing import Billing
from weighbridge.pipeline.invoice.cause import Cause, Variant
from weighbridge.pipeline.invoice.ledger import Ledger
from weighbridge.schemas.enumerations import LineKind


def _variants(ledger: Ledger) -> tuple[Variant, ...]:
    found = []
    if ledger.contract.discounts:
        found.append(Variant("agreed_discount_is_missing", lambda billing: replace(billing, discounts=())))
    off = {key: charged.off_list for key, charged in ledger.charged.items() if charged.off_list}
    if off:

        def off_list(billing: Billing) -> Billing:
            return replace(billing, off_list=off, discounts=())

        found.append(Variant("off_the_list_price_of_the_line", off_list))
    return tuple(found)


CAUSE = Cause(
    code="credit_or_discount",
    title="A credit, discount or commitment that was not expected, or is missing",
    order=120,
    cure="Hold the line against the contract: write what is agreed into its file, and ask for what is missing.",
    variants=_variants,
    kinds=(LineKind.CREDIT, LineKind.DISCOUNT, LineKind.COMMITMENT, LineKind.MINIMUM),
)
