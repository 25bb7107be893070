"""What cells show: causes that put money in question, residuals, and what cannot be compared yet."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

import polars as pl

from weighbridge.pipeline.invoice.cause import all_causes
from weighbridge.pipeline.invoice.compare import TOKENS, Compared, MonthResult
from weighbridge.pipeline.invoice.findings.words import CURES, NOT_CHARGED, PROVISIONAL, UNEXPLAINED, UNKNOWN
from weighbridge.pipeline.invoice.zones import day_of, last_day_of
from weighbridge.schemas.enumerations import ChargedBy, Confidence, FindingOrigin, LineKind, Severity, Status
from weighbridge.schemas.finding import EVIDENCE_ROWS, Finding
from weighbridge.schemas.identity import AttemptKey


@dataclass(slots=True)
class _Group:
    """Cells that make one finding."""

    cells: list[Compared] = field(default_factory=list)
    tokens: int = 0
    money: Decimal | None = Decimal(0)
    confidence: list[Confidence] = field(default_factory=list)


def of_causes(result: MonthResult) -> Iterator[Finding]:
    """Causes of gaps, each with all its cells."""
    groups: defaultdict[str, _Group] = defaultdict(_Group)
    for cell in result.cells:
        if cell.explained is None or cell.status is Status.PROVISIONAL:
            continue
        for share in cell.explained.shares:
            group = groups[share.cause]
            group.cells.append(cell)
            group.tokens += share.tokens
            group.money = None if group.money is None else group.money + share.money
            group.confidence.append(cell.explained.confidence)
    for cause in all_causes():
        if cause.code not in groups or (cause.code == "unmapped_line" and "lines" in result.notes):
            continue
        group = groups[cause.code]
        yield _finding(
            result,
            cause.code,
            group,
            severity=cause.severity,
            cure=cause.cure_for(result.ledger.contract.provider),
            cause=cause.code,
            at_stake=cause.at_stake,
            evidence=_evidence(result, cause.code),
        )


def of_status(result: MonthResult) -> Iterator[Finding]:
    """Cells that nothing explains, that cannot be compared, or that may still change, by model."""
    groups: defaultdict[tuple[str, str], _Group] = defaultdict(_Group)
    for cell in result.cells:
        code = _code(cell)
        if code is not None:
            group = groups[code, cell.key.model or ""]
            group.cells.append(cell)
            _add(group, cell)
    for (code, model), group in sorted(groups.items()):
        severity = {UNEXPLAINED: Severity.ERROR, UNKNOWN: Severity.WARNING}.get(code, Severity.NOTICE)
        if code == UNEXPLAINED and result.ledger.against is ChargedBy.USAGE_PAGE:
            severity = Severity.WARNING
        about = {"model": model} if model else {}
        stake = code == UNEXPLAINED
        yield _finding(result, code, group, severity=severity, cure=CURES[code], about=about, at_stake=stake)


def _code(cell: Compared) -> str | None:
    if cell.status is Status.PROVISIONAL:
        return PROVISIONAL
    if cell.status is Status.UNEXPLAINED:
        return NOT_CHARGED if cell.lines == 0 else UNEXPLAINED
    unheld = cell.key.kind in {LineKind.TAX, LineKind.OTHER_SERVICE}
    return UNKNOWN if cell.status is Status.NOT_COMPARED and not unheld else None


def _add(group: _Group, cell: Compared) -> None:
    ours, theirs = cell.expected, cell.charged
    if ours.tokens is not None and theirs.tokens is not None:
        group.tokens += theirs.tokens - ours.tokens
    known = None if ours.money is None or theirs.money is None else theirs.money - ours.money
    group.money = None if group.money is None or known is None else group.money + known
    group.confidence.append(Confidence.NONE)


def _finding(
    result: MonthResult, code: str, group: _Group, *, severity: Severity, cure: str, cause: str | None = None,
    about: Mapping[str, str] | None = None, at_stake: bool = True, evidence: Sequence[str] = (),
) -> Finding:  # fmt: skip
    ledger = result.ledger
    sides = [(cell.expected.tokens, cell.charged.tokens) for cell in group.cells]
    known = all(a is not None and b is not None for a, b in sides)
    ambiguous = Confidence.AMBIGUOUS in group.confidence
    confidence = Confidence.AMBIGUOUS if ambiguous else group.confidence[0]
    money = group.money if at_stake and ledger.currency else None
    zone = ledger.contract.zone
    return Finding(
        code=code,
        severity=severity,
        period=ledger.month,
        subject={"provider": ledger.contract.provider, "against": str(ledger.against), **(about or {})},
        rows=sum(cell.attempts + cell.lines for cell in group.cells),
        expected=sum(a or 0 for a, _ in sides) if known else None,
        observed=sum(b or 0 for _, b in sides) if known else None,
        difference=sum((b or 0) - (a or 0) for a, b in sides) if known else None,
        unit=TOKENS,
        cause=cause,
        confidence=confidence,
        amount=money,
        currency=ledger.currency if money is not None else None,
        evidence=tuple(evidence),
        segments=tuple(sorted({each for cell in group.cells for each in cell.segments}))[:EVIDENCE_ROWS],
        first_day=min(day_of(cell.key.start, zone) for cell in group.cells),
        last_day=max(last_day_of(cell.key.start, cell.key.end, zone) for cell in group.cells),
        cure=cure,
        origin=FindingOrigin.INVOICE,
    )


def _evidence(result: MonthResult, code: str) -> list[str]:
    """The ids of the calls a cause is about, where it is about some of them."""
    column = {"failed_but_billed": "failed", "retry_billed": "superseded"}.get(code)
    if column is None:
        return []
    calls = result.ledger.calls
    own = [bundle.number for bundle in calls if getattr(bundle, column)]
    keys = calls.members.filter(pl.col("number").is_in(own)).select("attempt_hi", "attempt_lo").unique()
    return sorted(AttemptKey(hi, lo).to_hex() for hi, lo in keys.iter_rows())[:EVIDENCE_ROWS]
