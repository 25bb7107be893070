"""The provider counts calls that no agent and no log of ours told of.

A cell with lines and no call of ours is this as a whole. Elsewhere, where the line or the provider's usage page counts
more tokens of a class than our calls have, it is these tokens at a price their class has in the cell. It is asked
last: a difference that anything else gives exactly is not traffic of somebody.

Worked example (input at 2 a million):

    ours  counted by the provider  charged | unobserved_traffic
     100                      150   0.0003 |             0.0001
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal

from weighbridge.pipeline.invoice.billing import Billing, Figure, rounded
from weighbridge.pipeline.invoice.cause import Cause
from weighbridge.pipeline.invoice.cells import Key
from weighbridge.pipeline.invoice.ledger import Ledger
from weighbridge.schemas.enumerations import LineKind


def _closing(ledger: Ledger, billing: Billing, left: Mapping[Key, Figure]) -> Billing | None:
    given = ledger.predicted(billing)
    by_line = billing.rounding is not None and billing.rounding.per == "line"
    plain = ledger.predicted(replace(billing, rounding=None)) if by_line else given
    added = dict(billing.added)
    for key, target in left.items():
        # Where calls have reports that nobody can read, what is left may be theirs: `contradictory_counts`.
        if key.kind != LineKind.TOKENS or ledger.contradictory(key) is not None:
            continue
        ours = given.get(key)
        if ours is None:
            # Nothing of ours is in the cell: whatever its lines charge. What they give back is no traffic.
            # Nor is a cell that only another change has emptied.
            if (target.tokens or 0) < 0 or (target.money or 0) < 0 or ledger.used(key):
                continue
            added[key] = Figure(target.tokens or 0, target.money)
            continue
        counted = target.tokens if target.tokens is not None else ledger.counted.get(key)
        if counted is None or ours.tokens is None or counted <= ours.tokens:
            continue
        more = counted - ours.tokens
        if target.money is None:
            added[key] = Figure(more, None)
            continue
        # Where the cell has several prices, theirs is the one that gives what was charged.
        paid = ledger.more(key, more, billing)
        before = plain[key].money
        exact = [each for each in paid if before is not None and _rounded(before + each, billing) == target.money]
        if exact or len(paid) == 1:
            added[key] = Figure(more, (exact or paid)[0])
    return replace(billing, added=added) if added != billing.added else None


def _rounded(paid: Decimal, billing: Billing) -> Decimal:
    """What a line charges where it is rounded; days are rounded before anything is added to them."""
    how = billing.rounding
    return paid if how is None or how.per != "line" else rounded(paid, how)


CAUSE = Cause(
    code="unobserved_traffic",
    title="Traffic that nobody of ours saw",
    order=140,
    cure="Find who holds the keys of this project, and put the agent or an importer of logs where their calls pass.",
    closing=_closing,
    last=True,
)
