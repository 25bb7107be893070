"""What an audit found, as findings: one per cell and month."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from weighbridge.pipeline.audit.cell import Cell
from weighbridge.pipeline.audit.rate import Rate
from weighbridge.pipeline.audit.verdict import Judged
from weighbridge.pipeline.audit.words import sentence
from weighbridge.schemas.enumerations import AuditVerdict, Confidence, FindingOrigin, Grade, Severity
from weighbridge.schemas.finding import Finding

NOT_CALIBRATED = "audit_not_calibrated"
GRAIN_BROKEN = "audit_grain_broken"
CODE_OF = {
    AuditVerdict.ACCUSED: ("audit_overbilled", Severity.ERROR),
    AuditVerdict.SUSPECTED: ("audit_suspected", Severity.WARNING),
    AuditVerdict.IDENTITY_BROKEN: ("audit_identity_broken", Severity.WARNING),
    AuditVerdict.UNDERBILLED: ("audit_underbilled", Severity.WARNING),
    AuditVerdict.CONVENTION: ("audit_convention", Severity.NOTICE),
}
CODES = (*(code for code, _ in CODE_OF.values()), NOT_CALIBRATED, GRAIN_BROKEN)
_GRAIN_CURE = (
    "This provider counts these tokens in whole blocks, and some counts are none; ask how they came about, and "
    "look for a place on the way that counts anew."
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What is said of one cell.

    Attributes:
        cell, judged: which, and what.
        rows, broken: answers that tell anything, and of them those with a gap.
        observed, gap: their tokens, added up.
        rate: interval of the mean relative gap, as far as the month has come.
        first_day, last_day: of these answers.
        evidence: ids of the answers with the largest gaps.
        amount, currency: what the gap costs; null where it is not known.
    """

    cell: Cell
    judged: Judged
    rows: int
    broken: int
    observed: int
    gap: int
    rate: Rate
    first_day: date | None = None
    last_day: date | None = None
    evidence: tuple[str, ...] = ()
    amount: Decimal | None = None
    currency: str | None = None


def findings(outcomes: Iterable[Outcome], period: str) -> list[Finding]:
    """The findings of a month, in a fixed order."""
    held = list(outcomes)
    found = [_finding(each, period) for each in held if each.judged.verdict in CODE_OF]
    waiting = [each for each in held if each.judged.verdict is AuditVerdict.NOT_CALIBRATED]
    if waiting:
        found.append(
            Finding(
                code=NOT_CALIBRATED,
                severity=Severity.INFO,
                period=period,
                subject={},
                rows=sum(each.rows for each in waiting),
                cure=sentence(AuditVerdict.NOT_CALIBRATED, Grade.G3, None),
                confidence=Confidence.NONE,
                origin=FindingOrigin.AUDIT,
            )
        )
    return sorted(found, key=lambda finding: finding.finding_id)


def _finding(each: Outcome, period: str) -> Finding:
    judged, grade = each.judged, Grade(each.cell.grade)
    code, severity = CODE_OF[judged.verdict]
    named = judged.label is not None and judged.label.code != "unknown"
    return Finding(
        code=code,
        severity=severity,
        period=period,
        subject=each.cell.subject(),
        rows=each.rows,
        expected=each.observed,
        observed=each.observed + each.gap,
        difference=each.gap,
        cause=judged.label.code if judged.label is not None and named else None,
        grade=grade,
        confidence=Confidence.PROBABLE if named else Confidence.NONE,
        amount=each.amount,
        currency=each.currency,
        evidence=each.evidence,
        first_day=each.first_day,
        last_day=each.last_day,
        cure=sentence(judged.verdict, grade, judged.label, judged.lacking),
        origin=FindingOrigin.AUDIT,
    )


def of_grain(row: dict[str, object], period: str) -> Finding:
    """The finding of one row of `grain.broken`."""
    broken, first, last = row["broken"], row["first_day"], row["last_day"]
    if not isinstance(broken, int) or not isinstance(first, date) or not isinstance(last, date):
        raise TypeError("a broken grain has a count and days")
    subject = {name: str(row[name]) for name in ("provider", "model", "token_class", "block")}
    return Finding(
        code=GRAIN_BROKEN,
        severity=Severity.NOTICE,
        period=period,
        subject=subject,
        rows=broken,
        cure=_GRAIN_CURE,
        unit="reports",
        expected=0,
        observed=broken,
        difference=broken,
        confidence=Confidence.CERTAIN,
        first_day=first,
        last_day=last,
        origin=FindingOrigin.AUDIT,
    )
