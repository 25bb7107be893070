"""What became of findings: what the month takes over from earlier ones, and what is disputed, credited, outstanding."""

from __future__ import annotations

import polars as pl

from weighbridge.pipeline.reconcile.life.carried import carried
from weighbridge.pipeline.reconcile.life.disputes import disputes
from weighbridge.pipeline.reconcile.life.material import Materiality
from weighbridge.pipeline.report.earlier import Place, State
from weighbridge.pipeline.report.query.findings import short_ids
from weighbridge.pipeline.report.sheet import Column, Kind, Sheet, rows_of
from weighbridge.pipeline.report.view import View

CARRIED = (
    Column("first_month", "First found in"),
    Column("severity", "Severity", Kind.BADGE),
    Column("code", "Finding", Kind.CODE),
    Column("subject", "Subject"),
    Column("difference", "Difference", Kind.SIGNED),
    Column("unit", "Unit"),
    Column("amount", "Amount", Kind.MONEY, currency_in="currency"),
    Column("currency", "Currency"),
    Column("state", "State", Kind.BADGE),
    Column("outstanding", "Outstanding", Kind.MONEY, currency_in="disputed_in"),
    Column("disputed_in", "Disputed in", page=False),
    Column("short_id", "Id", Kind.CODE),
    Column("material_rule", "Matters by", Kind.CODE, page=False),
    Column("finding_id", "Full id", Kind.CODE, page=False),
)
DISPUTED = (
    Column("provider", "Provider"),
    Column("currency", "Currency"),
    Column("findings", "Findings", Kind.COUNT),
    Column("disputed", "Disputed", Kind.MONEY, currency_in="currency"),
    Column("credited", "Credited", Kind.MONEY, currency_in="currency"),
    Column("outstanding", "Outstanding", Kind.MONEY, currency_in="currency"),
    Column("given_up", "Given up", Kind.MONEY, currency_in="currency"),
    Column("unknown", "Of unknown amount", Kind.COUNT, sparse=True),
)


def carried_over(view: View) -> Sheet:
    """Findings of earlier months that matter and nobody is done with. A closed month has those it was closed with."""
    own = (view.closes or {}).get(Place.THIS)
    closed = own is not None and own.state is State.CLOSED
    policy = Materiality() if closed else view.material
    held = carried(view.lake, view.period.months[0], policy, view.period.last)
    frame = held.with_columns(short_id=short_ids(held["finding_id"]), subject=pl.col("subject").fill_null(""))
    return Sheet(
        name="carried_over",
        title="Taken over from earlier months",
        columns=CARRIED,
        rows=rows_of(frame, CARRIED),
        sources=("finding", "finding_status"),
        empty="Nothing of earlier months is left to be done.",
        note="Findings of at least a warning that matter and are open, acknowledged or disputed.",
    )


def disputed(view: View) -> Sheet:
    """What is disputed, credited and outstanding, of all months."""
    frame = disputes(view.lake, view.period.last)
    return Sheet(
        name="disputes",
        title="Disputes and credits",
        columns=DISPUTED,
        rows=rows_of(frame, DISPUTED),
        sources=("finding", "finding_status"),
        empty="Nothing is disputed.",
        note="Of all months, as it stands. Outstanding is what was asked for and has not come back.",
        dated=False,
    )
