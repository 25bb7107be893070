"""Reconcile what the engine did with what was reported, month by month, and say what was found."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

import polars as pl

from weighbridge.pipeline.lake.found import write_findings
from weighbridge.pipeline.lake.lake import Lake
from weighbridge.pipeline.lake.records import Records
from weighbridge.pipeline.reconcile.batch import Outcome, Progress, reconcile_month, silent
from weighbridge.pipeline.reconcile.engines import Engine, on_driver, using
from weighbridge.pipeline.reconcile.engines.engine import POLARS
from weighbridge.pipeline.reconcile.found import gap_findings
from weighbridge.pipeline.reconcile.found.announced import GRACE_DAYS
from weighbridge.pipeline.reconcile.found.asked import Asked
from weighbridge.pipeline.reconcile.found.evidence import with_segments
from weighbridge.pipeline.reconcile.found.of_attempts import empty_month, unassigned_tenant
from weighbridge.pipeline.reconcile.found.record_findings import of_records
from weighbridge.pipeline.reconcile.match.lateness import Lateness
from weighbridge.pipeline.reconcile.money import Prices
from weighbridge.pipeline.reconcile.month import Month, days_of
from weighbridge.pipeline.reconcile.period import checked, month_of
from weighbridge.pipeline.reconcile.recount.recount_constants import write_constants
from weighbridge.pipeline.reconcile.transition import Transition
from weighbridge.schemas.enumerations import FindingOrigin, Severity
from weighbridge.schemas.finding import Finding

_SEVERITY = {severity: place for place, severity in enumerate(Severity)}


@dataclass(frozen=True, slots=True)
class ReconcileResult:
    """What a run did.

    Attributes:
        months: the UTC months that were reconciled, in order.
        attempts: attempts, and reports without one.
        statuses: status -> rows of `reconciled` (one per attempt and direction).
        causes: rows of `gap_cause`.
        findings: of these months, worst first.
        transitions: what became of amounts that were provisional.
    """

    months: tuple[str, ...]
    attempts: int
    statuses: dict[str, int]
    causes: int
    findings: tuple[Finding, ...]
    transitions: tuple[Transition, ...] = ()


def reconcile(
    lake: Lake,
    *,
    month: str | None = None,
    key_id: str | None = None,
    ids_grace_days: int = GRACE_DAYS,
    as_of: date | None = None,
    lateness: Lateness | None = None,
    engine: str | Engine = POLARS,
    progress: Progress = silent,
) -> ReconcileResult:
    """Match, explain and price; write `reconciled`, `gap_cause` and `finding`.

    Days and months that come out as they were are not written, so a second run changes nothing.

    Args:
        lake: where the tables lie; readings and prices have to be up to date.
        month: `YYYY-MM`; all months that have any rows if it is null.
        key_id: id of the installation's pseudonym key; rows made with another one are then a finding.
        ids_grace_days: of the newest days of the lake, how many may still get token ids (see `announced`).
        as_of: the UTC day it is: what may still come makes an amount provisional; null: everything is final.
        lateness: until when it may; two days by default.
        engine: what computes: polars, duckdb or spark. The rows are the same.
        progress: is told which month and days come next.

    Raises:
        ConfigError: `month` is no month, or the engine is not installed.
        SumError: a sum is beyond 64 bits.
        LakeBusyError: another process is writing.
    """
    asked = months_of(lake) if month is None else (checked(month),)
    prices = prices_used(lake)
    found: list[Finding] = []
    total = Outcome()
    with using(engine), lake.lock():
        for period in asked:
            of_month = Month(lake, period, prices, as_of, lateness or Lateness())
            outcome = reconcile_month(of_month, progress)
            # These are few; and Spark may take a remainder of rows by nought before it leaves those rows out.
            with on_driver():
                write_constants(lake, period, outcome.recounts)
            found += with_segments(of_month, findings_of(Asked(of_month, key_id, ids_grace_days), outcome))
            total.attempts += outcome.attempts
            total.causes += outcome.causes
            total.transitions += outcome.transitions
            for status, count in outcome.statuses.items():
                total.statuses[status] = total.statuses.get(status, 0) + count
        ordered = in_order(found)
        write_findings(lake, ordered, origin=FindingOrigin.RECONCILE, periods=None if month is None else asked)
    statuses = dict(sorted(total.statuses.items()))
    return ReconcileResult(asked, total.attempts, statuses, total.causes, tuple(ordered), total.transitions)


def months_of(lake: Records) -> tuple[str, ...]:
    """The UTC months of which the lake has anything to say."""
    days = days_of(lake, ("attempt", "reading", "quarantine", "gap", "reconciled"))
    return tuple(sorted({month_of(day) for day in days}))


def findings_of(asked: Asked, outcome: Outcome) -> list[Finding]:
    """Everything that was found in a month that has been reconciled."""
    period = asked.month.period
    found = of_records(asked)
    found += gap_findings.of_causes(outcome.caused, period)
    found += gap_findings.of_residuals(outcome.unexplained, period)
    found += gap_findings.of_open(outcome.waiting, period)
    found += unassigned_tenant(outcome.unassigned, outcome.seen, period)
    if outcome.unmatched:
        found += gap_findings.of_unmatched(pl.concat(outcome.unmatched), asked.month.unseen, outcome.watched, period)
    return found if outcome.attempts else [*found, empty_month(period)]


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """Worst first: by severity, then by amount (unknown ones after all others), then by id."""
    return sorted(
        findings,
        key=lambda f: (-_SEVERITY[f.severity], f.amount is None, -(f.amount or Decimal(0)), f.finding_id),
    )


def prices_used(lake: Records) -> Prices:
    """The rows of the price book that priced anything in the lake."""
    used = lake.scan("priced_amount", columns=["price_id"]).unique().collect(engine="streaming")["price_id"]
    return Prices.of(lake, used.drop_nulls())
