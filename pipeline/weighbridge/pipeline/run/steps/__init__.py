"""The steps of a night, in their order. Each reads what the ones before it wrote.

validate    day    tables held to their contract; a gate that is shut ends the night
price       day    readings to amounts
engine      month  engine counters beside attempts, and what they leave to aborted ones
reconcile   month  gaps, causes, findings
invoice     month  bills and usage pages beside our own priced usage
baseline    day    limits of cells, what left them, and alerts
audit       day    bets on whether a provider counts right, and what a month comes to
adjust      month  late data of closed months, as adjustments of the open one
share       day    histograms for everybody, of days that are settled
report      month  page, workbook and tables
publish     month  the page of the shared edition

Two more are done where days of the past are done anew: `read` (day, reports to readings) before all of them, and
`share_again` (day, released histograms made again) instead of `share`.
"""

from __future__ import annotations

from weighbridge.pipeline.run.home import Home
from weighbridge.pipeline.run.step import Step, settle_rest, stamps_of
from weighbridge.pipeline.run.steps import (
    adjust,
    audit,
    baseline,
    engine,
    invoice,
    price,
    publish,
    read,
    reconcile,
    report,
    share,
    validate,
)

READ, VALIDATE, PRICE = read.STEP, validate.STEP, price.STEP
ENGINE, RECONCILE, INVOICE = engine.STEP, reconcile.STEP, invoice.STEP
BASELINE, AUDIT, ADJUST = baseline.STEP, audit.STEP, adjust.STEP
SHARE, SHARE_AGAIN = share.STEP, share.AGAIN
REPORT, PUBLISH = report.STEP, publish.STEP
# What a night does with whatever is due.
NIGHT: tuple[Step, ...] = (
    *(VALIDATE, PRICE, ENGINE, RECONCILE, INVOICE, BASELINE, AUDIT),
    *(ADJUST, SHARE, REPORT, PUBLISH),
)
# What is done anew with days of the past: everything that rests on how they are read.
ANEW: tuple[Step, ...] = (READ, *NIGHT)
STEPS = {step.name: step for step in (*ANEW, SHARE_AGAIN)}


def settle(home: Home) -> None:
    """Finish what a run that deleted rows has left to be noted; whoever begins a run does this first.

    Raises:
        LakeBusyError: another process is writing.
    """
    if stamps_of(home).resting() is not None:
        with home.lake().lock():
            settle_rest(home, NIGHT)
