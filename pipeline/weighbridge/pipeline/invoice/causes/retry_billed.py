"""Tries that a later try of the same request followed on, and that brought no whole answer, are charged.

The client gave up waiting (a timeout, a lost connection) and asked again; the server went on with the first call. The
amount is what the reports of those tries cost.

Worked example (input at 2 a million, one request):

    try  status     tokens  expected  charged | retry_billed
      1  aborted        40         -          |
      2  succeeded      40   0.00008  0.00016 |      0.00008
"""

from __future__ import annotations

from dataclasses import replace

from weighbridge.pipeline.invoice.cause import Cause, Variant
from weighbridge.pipeline.invoice.ledger import Ledger


def _variants(ledger: Ledger) -> tuple[Variant, ...]:
    if not any(bundle.superseded for bundle in ledger.calls):
        return ()
    return (Variant("tries_before_the_last", lambda billing: replace(billing, superseded=True)),)


CAUSE = Cause(
    code="retry_billed",
    title="Tries before the last one were charged",
    order=20,
    cure="Raise the client's timeout above the slowest answers, and cancel a call on the server before asking again.",
    cures={
        "openai": "Send an idempotency key with each request and raise the timeout, so that a retry is no second call."
    },
    variants=_variants,
)
