"""What is in no sum, or in no grouping: calls that contradict themselves, and what a bill states and nobody tells."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from decimal import Decimal
from typing import Any

from weighbridge.pipeline.invoice.compare import MonthResult
from weighbridge.pipeline.invoice.contradictory import both
from weighbridge.pipeline.invoice.findings.words import CONTRADICTORY, CURES, GRAIN, LACKS, PAGE
from weighbridge.pipeline.invoice.sides import Spoiled
from weighbridge.pipeline.invoice.spans import Span
from weighbridge.pipeline.invoice.theirs.pages import contradictory_pages
from weighbridge.pipeline.invoice.zones import day_of, last_day_of, month_of
from weighbridge.pipeline.lake.records import Records
from weighbridge.schemas.enumerations import ChargedBy, Confidence, FindingOrigin, Severity
from weighbridge.schemas.finding import EVIDENCE_ROWS, Finding


def of_contradictory(result: MonthResult) -> Iterator[Finding]:
    """Calls that are in no sum because their reports contradict themselves, by model, with what they may cost."""
    ledger = result.ledger
    by_model: dict[str, tuple[Spoiled, list[Span]]] = {}
    for (span, model), calls in ledger.spoiled.items():
        before = by_model.get(model or "")
        told = calls if before is None else both(before[0], calls)
        by_model[model or ""] = told, [*(before[1] if before else ()), span]
    zone = ledger.contract.zone
    for model, (calls, spans) in sorted(by_model.items()):
        limited = calls.money is not None and ledger.currency == calls.currency is not None
        yield Finding(
            code=CONTRADICTORY,
            severity=Severity.WARNING,
            period=ledger.month,
            subject={"provider": ledger.contract.provider, "against": str(ledger.against), **_about(model)},
            rows=calls.calls,
            unit="attempts",
            currency=calls.currency if limited else None,
            amount_low=Decimal(0) if limited else None,
            amount_high=calls.money if limited else None,
            confidence=Confidence.NONE,
            evidence=calls.attempts,
            segments=calls.segments,
            first_day=min(day_of(start, zone) for start, _ in spans),
            last_day=max(last_day_of(start, end, zone) for start, end in spans),
            cure=CURES[CONTRADICTORY],
            origin=FindingOrigin.INVOICE,
        )


def of_pages(lake: Records, zones: Mapping[str, str], months: Collection[str] | None) -> Iterator[Finding]:
    """Results of usage pages that contradict themselves, by provider and month.

    Args:
        lake: with usage pages.
        zones: provider -> its billing zone; UTC where it is not in it.
        months: the billing months that are asked for; all where null.
    """
    held: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in contradictory_pages(lake).sort("period_start", "segment").iter_rows(named=True):
        month = month_of(row["period_start"], zones.get(row["provider"], "UTC"))
        if months is None or month in months:
            held.setdefault((row["provider"], month), []).append(row)
    for (provider, month), rows in sorted(held.items()):
        zone = zones.get(provider, "UTC")
        yield Finding(
            code=PAGE,
            severity=Severity.WARNING,
            period=month,
            subject={"provider": provider, "against": str(ChargedBy.USAGE_PAGE)},
            rows=len(rows),
            unit="rows",
            segments=tuple(sorted({row["segment"] for row in rows if row["segment"]}))[:EVIDENCE_ROWS],
            first_day=min(day_of(row["period_start"], zone) for row in rows),
            last_day=max(last_day_of(row["period_start"], row["period_end"], zone) for row in rows),
            cure=CURES[PAGE],
            origin=FindingOrigin.INVOICE,
        )


def of_grain(result: MonthResult) -> Iterator[Finding]:
    """What a bill states, by model, and could not be compared by."""
    ledger = result.ledger
    for each in ledger.lacking:
        about = {"provider": ledger.contract.provider, "against": str(ledger.against), **_about(each.model)}
        yield Finding(
            code=GRAIN,
            severity=Severity.NOTICE,
            period=ledger.month,
            subject={**about, "grouped_by": each.dimension},
            rows=each.lines + each.calls,
            unit="attempts" if each.calls else "rows",
            cure=LACKS["calls" if each.calls else "lines"][each.dimension],
            origin=FindingOrigin.INVOICE,
        )


def _about(model: str | None) -> dict[str, str]:
    return {"model": model} if model else {}
