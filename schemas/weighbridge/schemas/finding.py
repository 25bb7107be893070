"""A finding: what is wrong with the data, as a value: expected, observed, difference, cause and cure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import date
from decimal import Decimal

from weighbridge.schemas.enumerations import Confidence, FindingOrigin, Grade, Severity
from weighbridge.schemas.identity import framed

CODE = re.compile(r"[a-z][a-z0-9_]{2,47}")
EVIDENCE_ROWS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One finding about one subject in one period.

    Attributes:
        code: stable, snake_case; what kind of finding (`duplicate_report`, `quarantined_rows`).
        severity: info, notice, warning or error.
        period: the UTC month, `YYYY-MM`, or `all` for a finding about the installation.
        subject: what it is about, as ordered name -> value (provider, model, tenant, task, source, ...).
        rows: how many rows it stands for.
        expected, observed, difference: in `unit`; null where one side is unknown. difference = observed - expected.
        unit: `tokens`, `rows`, `reports`, `attempts` or a currency code.
        cause: the code of the cause, or null.
        amount: money at stake, exact decimal, or null where no price is known. Positive: charged too much.
        amount_low, amount_high: its limits where the price is not one but one of several; null where not known.
        evidence: attempt ids (32 hexadecimal digits) of at most 20 rows, lowest first.
        segments: digests (64 hexadecimal digits) of the files the evidence came from.
        cure: one sentence that says what to do.
        origin: the room that found it.
    """

    code: str
    severity: Severity
    period: str
    subject: Mapping[str, str]
    rows: int
    cure: str
    expected: int | None = None
    observed: int | None = None
    difference: int | None = None
    unit: str = "tokens"
    cause: str | None = None
    grade: Grade | None = None
    confidence: Confidence = Confidence.CERTAIN
    amount: Decimal | None = None
    currency: str | None = None
    amount_low: Decimal | None = None
    amount_high: Decimal | None = None
    evidence: tuple[str, ...] = ()
    segments: tuple[str, ...] = ()
    first_day: date | None = None
    last_day: date | None = None
    origin: FindingOrigin = FindingOrigin.RECONCILE
    finding_id: str = field(init=False)

    def __post_init__(self) -> None:
        """Derive the id from code, subject and period, so that the same finding keeps its id when it is found again."""
        if not CODE.fullmatch(self.code):
            raise ValueError(f"finding code {self.code!r} must match {CODE.pattern}")
        parts = [part for item in sorted(self.subject.items()) for part in item]
        raw = hashlib.sha256(framed(self.code, self.period, *parts)).hexdigest()
        object.__setattr__(self, "finding_id", raw[:32])

    def row(self) -> dict[str, object]:
        """The finding as a row of the `finding` table."""
        out = {item.name: getattr(self, item.name) for item in fields(self)}
        out["subject"] = "; ".join(f"{name}={value}" for name, value in self.subject.items())
        out["tenant"] = self.subject.get("tenant")
        out["provider"] = self.subject.get("provider")
        out["model"] = self.subject.get("model")
        out["evidence"] = list(self.evidence[:EVIDENCE_ROWS])
        out["segments"] = list(self.segments[:EVIDENCE_ROWS])
        for name in ("severity", "grade", "confidence", "origin"):
            out[name] = None if out[name] is None else str(out[name])
        return out
