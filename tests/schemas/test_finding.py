"""A finding is a value: its id follows from what it is about, and its row fits the table."""

from __future__ import annotations

import hashlib
from datetime import date
from decimal import Decimal

import pyarrow as pa
import pytest

from weighbridge.schemas.enumerations import Confidence, Grade, Severity
from weighbridge.schemas.finding import Finding
from weighbridge.schemas.segment import conform


def finding(**changes: object) -> Finding:
    facts: dict[str, object] = {
        "code": "duplicate_report",
        "severity": Severity.WARNING,
        "period": "2026-03",
        "subject": {"provider": "openai", "model": "gpt-4o", "tenant": "unassigned"},
        "rows": 2,
        "cure": "Ask the provider for a credit.",
    }
    return Finding(**(facts | changes))  # type: ignore[arg-type]


def test_the_id_is_a_hash_of_code_subject_and_period() -> None:
    def frame(text: str) -> bytes:
        return b"s" + len(text).to_bytes(8, "big") + text.encode()

    parts = ["duplicate_report", "2026-03", "model", "gpt-4o", "provider", "openai", "tenant", "unassigned"]
    expected = hashlib.sha256(b"".join(map(frame, parts))).hexdigest()[:32]
    assert finding().finding_id == expected


def test_the_id_stays_while_figures_change_and_differs_where_the_subject_does() -> None:
    assert finding(rows=9, observed=4, severity=Severity.ERROR).finding_id == finding().finding_id
    assert (
        finding(subject={"tenant": "unassigned", "model": "gpt-4o", "provider": "openai"}).finding_id
        == finding().finding_id
    )
    changes: list[dict[str, object]] = [{"code": "capture_gap"}, {"period": "all"}, {"subject": {}}]
    others = {finding(**change).finding_id for change in changes}
    assert len(others | {finding().finding_id}) == 4


@pytest.mark.parametrize("code", ["", "Duplicate", "no", "with blank", "9lives", "x" * 49])
def test_a_code_is_a_short_snake_case_word(code: str) -> None:
    with pytest.raises(ValueError, match="must match"):
        finding(code=code)


def test_the_row_fits_the_table() -> None:
    full = finding(
        expected=10,
        observed=14,
        difference=4,
        cause="duplicate_report",
        grade=Grade.G2,
        confidence=Confidence.PROBABLE,
        amount=Decimal("0.000000000000000001"),
        currency="USD",
        evidence=tuple(f"{number:032x}" for number in range(30)),
        segments=("a" * 64,),
        first_day=date(2026, 3, 1),
        last_day=date(2026, 3, 2),
    )
    for item in (full, finding()):
        row = item.row()
        data = pa.Table.from_pylist([row | {"evidence": list(row["evidence"])}])  # type: ignore[call-overload]
        assert conform("finding", data).num_rows == 1
    row = full.row()
    assert row["subject"] == "provider=openai; model=gpt-4o; tenant=unassigned"
    assert (row["tenant"], row["provider"], row["model"]) == ("unassigned", "openai", "gpt-4o")
    assert (row["severity"], row["grade"], row["confidence"]) == ("warning", "G2", "probable")
    assert len(row["evidence"]) == 20  # type: ignore[arg-type]
    assert row["amount"] == Decimal("0.000000000000000001")
    assert finding().row()["grade"] is None
