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

import polars as pl

from weighbridge.pipeline.invoice.billing import Billing
from weighbridge.pipeline.invoice.cause import Cause, Variant
from weighbridge.pipeline.invoice.ledger import Ledger


def _by_end(billing: Billing) -> Billing:
    return replace(billing, calls=billing.calls.with_columns(at=pl.col("ended")))


def _variants(ledger: Ledger) -> tuple[Variant, ...]:
    found = []
    if (ledger.calls["at"] != ledger.calls["ended"]).any():
        found.append(Variant("counted_when_over", _by_end))
    zone = ledger.contract.zone
    if zone != "UTC":
        naive = pl.col("at").dt.replace_time_zone(None)
        # A clock time that is there twice, or not at all, stays where it is.
        as_local = naive.dt.replace_time_zone(zone, ambiguous="earliest", non_existent="null").dt.convert_time_zone(
            "UTC"
        )
        as_utc = pl.col("at").dt.convert_time_zone(zone).dt.replace_time_zone(None).dt.replace_time_zone("UTC")
        for why, moved in (("cut_by_utc", as_local), ("cut_by_the_billing_zone", as_utc)):
            at = pl.coalesce(moved, "at").dt.cast_time_unit("us")
            found.append(Variant(why, _shift(at)))
    return tuple(found)


def _shift(at: pl.Expr) -> Callable[[Billing], Billing]:
    return lambda billing: replace(billing, calls=billing.calls.with_columns(at=at))


CAUSE = Cause(
    code="period_boundary",
    title="Calls at the end of a period are charged in the next one",
    order=30,
    cure="Over both periods nothing is owed; set the provider's billing zone in its contract and compare whole months.",
    variants=_variants,
    shifts=True,
    at_stake=False,
)
