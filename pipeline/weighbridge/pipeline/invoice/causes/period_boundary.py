"""Calls around the end of a period are charged in the neighbouring one.

A provider may count a call when it is over instead of when it arrived, or cut its days by another clock than the one
its lines name. What moves out of one cell moves into the next, so the sum of both is right.

Worked example (a day ends at 24:00):

    call       tokens  day of the call  day charged | period_boundary of the 1st, of the 2nd
    23:59:58       30              1st          2nd |                               -30, +30
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from weighbridge.pipeline.invoice.billing import Billing
from weighbridge.pipeline.invoice.cause import Cause, Variant
from weighbridge.pipeline.invoice.ledger import Ledger
from weighbridge.pipeline.invoice.ours.clocks import ARRIVED, clocks


def _variants(ledger: Ledger) -> tuple[Variant, ...]:
    others = [name for name in clocks(ledger.contract.zone) if name != ARRIVED]
    moves = [name for name in others if any(each.places[name] != each.places[ARRIVED] for each in ledger.calls)]
    return tuple(Variant(name, _by(name)) for name in moves)


def _by(clock: str) -> Callable[[Billing], Billing]:
    return lambda billing: replace(billing, clock=clock)


CAUSE = Cause(
    code="period_boundary",
    title="Calls at the end of a period are charged in the next one",
    order=30,
    cure="Over both periods nothing is owed; set the provider's billing zone in its contract and compare whole months.",
    variants=_variants,
    shifts=True,
    at_stake=False,
)
