"""Why a month cannot be closed yet: each gate that holds it back, with what to do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal

import polars as pl

from weighbridge.pipeline.close.batches import batches
from weighbridge.pipeline.close.month_rows import EVERY_PERIOD, ordered
from weighbridge.pipeline.close.plain import text_of
from weighbridge.pipeline.close.replay import Replay
from weighbridge.pipeline.ingest.readings import REPORT_READ, last_revisions, read_reports
from weighbridge.pipeline.lake import polars_schema
from weighbridge.pipeline.lake.records import Records
from weighbridge.pipeline.price.arrival import arrivals_of
from weighbridge.pipeline.price.book import PriceBook
from weighbridge.pipeline.price.frame import price_readings
from weighbridge.pipeline.reconcile.batch import reconcile_month
from weighbridge.pipeline.reconcile.found.announced import GRACE_DAYS
from weighbridge.pipeline.reconcile.found.asked import Asked
from weighbridge.pipeline.reconcile.found.evidence import with_segments
from weighbridge.pipeline.reconcile.life.material import Materiality, judged
from weighbridge.pipeline.reconcile.life.status import life
from weighbridge.pipeline.reconcile.month import Month, days_of
from weighbridge.pipeline.reconcile.period import ends
from weighbridge.pipeline.reconcile.reconcile import findings_of, prices_used
from weighbridge.schemas.enumerations import FindingOrigin, FindingState, Severity, Status
from weighbridge.schemas.tables import TABLES

HELD = ("attempt", "usage_report", "reading", "quarantine", "gap")
VALIDATED = pl.col("origin") == str(FindingOrigin.VALIDATE)
_SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosePolicy:
    """When a month may be closed.

    Attributes:
        grace_days: how many UTC days after its last one its rows may still come.
        accepts: codes of findings whose open errors hold no month back.
        material: an error about a known amount below this holds no month back; one of unknown amount always does.
        ids_grace_days: as reconciliation was told.
        materiality: which findings matter; an error that does not holds no month back either.
    """

    grace_days: int = 3
    accepts: frozenset[str] = frozenset()
    material: Decimal = Decimal(0)
    ids_grace_days: int = GRACE_DAYS
    materiality: Materiality = field(default_factory=Materiality)

    def plain(self) -> dict[str, object]:
        """It as plain values, to be pinned with a close."""
        return {
            "grace_days": self.grace_days,
            "accepts": sorted(self.accepts),
            "material": text_of(self.material),
            "ids_grace_days": self.ids_grace_days,
            "materiality": self.materiality.plain(),
        }


@dataclass(frozen=True, slots=True)
class Refusal:
    """One gate that is closed.

    Attributes:
        code: which gate.
        why: what was found.
        cure: what to do, in one sentence.
    """

    code: str
    why: str
    cure: str


def too_early(period: str, today: date, policy: ClosePolicy) -> Iterator[Refusal]:
    """The month is not over, or its rows may still come."""
    last = ends(period)[1]
    first_day = last + timedelta(days=policy.grace_days + 1)
    if today < first_day:
        state = "is not over" if today <= last else f"has {policy.grace_days} days of grace for rows that come late"
        yield Refusal(
            "too_early",
            f"{period} {state}; today is {today} (UTC)",
            f"Close it on {first_day} or later, or with `--force-early REASON`; what comes later is an adjustment.",
        )


def nothing_there(lake: Records, period: str) -> Iterator[Refusal]:
    """The lake has nothing to say of the month."""
    first, last = ends(period)
    if not any(first <= day <= last for day in days_of(lake, HELD)):
        yield Refusal(
            "nothing_to_close",
            f"the lake has no rows of {period}",
            "Check the month, and that its files were taken in with `weighbridge ingest`.",
        )


def gate_closed(gate: bool | None, lake: Records, period: str, today: date) -> Iterator[Refusal]:
    """Validation found what must not be built upon.

    Args:
        gate: whether the gate of validation is open; null where only its findings are there to tell.
    """
    found = _open_errors(lake, period, today, VALIDATED).height if gate is None else 0
    if gate is False or found:
        yield Refusal(
            "validation",
            f"validation refuses {period}",
            "Run `weighbridge validate` to see which rule does not hold, and mend the rows or release them.",
        )


def still_open(lake: Records, period: str) -> Iterator[Refusal]:
    """Amounts are provisional: the other side may still come."""
    columns = ["day", "status", "open_until"]
    first, last = ends(period)
    rows = lake.scan("reconciled", first=first, last=last, columns=columns)
    held = rows.filter(pl.col("status") == str(Status.PROVISIONAL)).select(pl.len(), pl.col("open_until").max())
    count, until = held.collect(engine="streaming").row(0)
    if count:
        then = until + timedelta(days=1) if until < date.max else until
        yield Refusal(
            "provisional",
            f"{count} amounts of {period} are provisional until {until}",
            f"Run `weighbridge reconcile --month {period}` on {then} or later, or with `--as-of {then}` as they are.",
        )


def out_of_date(
    lake: Records, period: str, book: PriceBook, key_id: str | None, policy: ClosePolicy
) -> Iterator[Refusal]:
    """Readings, amounts, comparisons or findings are not what they would be now; only the first of them is told."""
    if what := _stale(lake, period, book, key_id, policy):
        yield Refusal(
            f"{what}_out_of_date",
            f"the {what} of {period} are not those that this version makes of its rows now",
            f"Run `weighbridge reconcile --month {period}`, look at what changed, and close again.",
        )


def _stale(lake: Records, period: str, book: PriceBook, key_id: str | None, policy: ClosePolicy) -> str | None:
    differing: list[str] = []

    def compare(table: str, made: pl.DataFrame, held: pl.DataFrame) -> None:
        if not differing and _differ(table, made, held):
            differing.append(table)

    month = Month(Replay(lake, compare), period, prices_used(lake))
    if _stale_readings(month):
        return "readings"
    if _stale_amounts(month, book):
        return "prices"
    outcome = reconcile_month(month)
    if differing:
        return "comparisons"
    found = with_segments(month, findings_of(Asked(month, key_id, policy.ids_grace_days), outcome))
    made = pl.DataFrame([finding.row() for finding in found], schema=polars_schema("finding"))
    own = (pl.col("period") == period) & (pl.col("origin") == str(FindingOrigin.RECONCILE))
    return "findings" if _differ("finding", made, lake.scan("finding").filter(own).collect()) else None


def open_findings(lake: Records, period: str, today: date, policy: ClosePolicy) -> Iterator[Refusal]:
    """Errors that matter and nobody has looked at; those of validation have a gate of their own."""
    errors = _open_errors(lake, period, today, ~VALIDATED).filter(
        ~pl.col("code").is_in(list(policy.accepts)),
        pl.col("amount").is_null() | (pl.col("amount").abs() >= policy.material),
    )
    held = judged(lake, errors, policy.materiality).filter("material")
    if held.height:
        named = [f"{row['code']} {row['finding_id'][:8]}" for row in held.head(_SHOWN).iter_rows(named=True)]
        more = f" and {held.height - _SHOWN} more" if held.height > _SHOWN else ""
        yield Refusal(
            "open_findings",
            f"{held.height} open errors about {period}: {', '.join(named)}{more}",
            "Acknowledge, waive or dispute them with `weighbridge findings`, or name the code under [close] accepts.",
        )


def _open_errors(lake: Records, period: str, today: date, which: pl.Expr) -> pl.DataFrame:
    held = life(lake, today).filter(
        which,
        pl.col("period").is_in([period, EVERY_PERIOD]),
        pl.col("severity") == str(Severity.ERROR),
        pl.col("state") == str(FindingState.OPEN),
    )
    return held.sort("code", "finding_id")


def _stale_readings(month: Month) -> bool:
    for days in batches([month.lake], ["usage_report", "reading"], *ends(month.period)):
        reports = last_revisions(_rows(month, "usage_report", days).select(REPORT_READ))
        if _differ("reading", read_reports(reports), _rows(month, "reading", days)):
            return True
    return False


def _stale_amounts(month: Month, book: PriceBook) -> bool:
    for days in batches([month.lake], ["reading", "priced_amount"], *ends(month.period)):
        made = price_readings(_rows(month, "reading", days), book, arrivals_of(month.lake, book))
        if _differ("priced_amount", made, _rows(month, "priced_amount", days)):
            return True
    return False


def _rows(month: Month, table: str, days: list[date]) -> pl.DataFrame:
    return month.lake.scan(table, first=days[0], last=days[-1]).filter(pl.col("day").is_in(days)).collect()


def _differ(table: str, made: pl.DataFrame, held: pl.DataFrame) -> bool:
    about = TABLES[table]
    return made.height != held.height or not ordered(about, made).equals(ordered(about, held))
