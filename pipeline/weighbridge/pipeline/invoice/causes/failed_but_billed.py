"""Calls that were answered with an error are charged.

A provider says that failed calls are free, and some of their reports carry usage all the same. The amount is what the
reports of the failed calls of a cell cost, neither more nor less.

Worked example (input at 2 a million):

    calls               tokens  expected  charged | failed_but_billed
    answered                100    0.0002         |
    failed (500)             50         -  0.0003 |            0.0001
"""

from __future__ import annotations

from dataclasses import replace

from weighbridge.pipeline.invoice.cause import Cause, Variant
from weighbridge.pipeline.invoice.ledger import Ledger


def _variants(ledger: Ledger) -> tuple[Variant, ...]:
    if not any(bundle.failed for bundle in ledger.calls):
        return ()
    return (Variant("calls_answered_with_an_error", lambda billing: replace(billing, failed=True)),)


CAUSE = Cause(
    code="failed_but_billed",
    title="Calls that failed were charged",
    order=10,
    cure="Ask for a credit: name the calls, their status and the day; their ids are the evidence of this finding.",
    cures={"azure": "Calls filtered before the model ran are free, later ones are not: dispute only the former."},
    variants=_variants,
)
