"""What is in no sum, or in no grouping: calls that contradict themselves, and what a bill states and nobody tells."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from weighbridge.pipeline.invoice.compare import MonthResult
from weighbridge.pipeline.invoice.contradictory import both
from weighbridge.pipeline.invoice.findings.words import CONTRADICTORY, CURES, GRAIN, LACKS
from weighbridge.pipeline.invoice.ledger import Spoiled
from weighbridge.pipeline.invoice.spans import Span
from weighbridge.pipeline.invoice.zones import day_of, last_day_of
from weighbridge.schemas.enumerations import Confidence, FindingOrigin, Severity
from weighbridge.schemas.finding import Finding


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
