"""Why a month cannot be closed: each gate says what it found and what to do, and opens once that is done."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from tests.pipeline.close.conftest import NOW, Office, book

from weighbridge.pipeline.close.gates import ClosePolicy, open_findings, too_early
from weighbridge.pipeline.reconcile.life.material import Materiality
from weighbridge.pipeline.reconcile.life.status import acknowledge, waive
from weighbridge.schemas.enumerations import FindingOrigin, Severity


def codes(office: Office, **options: Any) -> list[str]:
    done = office.close(**options)
    assert done.closed is (not done.refused)
    assert not done.closed or office.lake.rows("close") == 1
    assert all(refusal.why and refusal.cure.endswith(".") for refusal in done.refused)
    return [refusal.code for refusal in done.refused]


@pytest.mark.parametrize(
    ("now", "open_"),
    [
        (datetime(2026, 3, 31, 23, 59, tzinfo=UTC), False),
        (datetime(2026, 4, 3, 23, 59, tzinfo=UTC), False),
        (datetime(2026, 4, 4, 0, 0, tzinfo=UTC), True),
        # The month is one of UTC, wherever the clock of the host stands.
        (datetime(2026, 4, 4, 13, 59, tzinfo=timezone(timedelta(hours=14))), False),
        (datetime(2026, 4, 4, 14, 0, tzinfo=timezone(timedelta(hours=14))), True),
        (datetime(2026, 4, 3, 12, 0, tzinfo=timezone(timedelta(hours=-12))), True),
    ],
)
def test_a_month_is_open_until_its_days_of_grace_are_over(now: datetime, open_: bool) -> None:
    refused = list(too_early("2026-03", now.astimezone(UTC).date(), ClosePolicy(grace_days=3)))
    assert [refusal.code for refusal in refused] == ([] if open_ else ["too_early"])


@pytest.mark.parametrize(
    ("period", "last"),
    [("2026-02", date(2026, 2, 28)), ("2028-02", date(2028, 2, 29)), ("2026-12", date(2026, 12, 31))],
)
def test_a_month_ends_with_its_own_last_day(period: str, last: date) -> None:
    policy = ClosePolicy(grace_days=0)
    assert list(too_early(period, last, policy))
    assert not list(too_early(period, last + timedelta(days=1), policy))


def test_the_clock_that_is_handed_in_decides_in_utc(filled: Office) -> None:
    east = timezone(timedelta(hours=14))
    done = filled.close(now=datetime(2026, 4, 11, 13, 59, tzinfo=east), policy=ClosePolicy(grace_days=10))
    (refusal,) = done.refused
    assert "2026-04-11 or later" in refusal.cure
    assert "10 days of grace" in refusal.why


def test_closing_early_takes_a_reason_and_keeps_it_in_the_lake_alone(filled: Office) -> None:
    now = datetime(2026, 3, 31, tzinfo=UTC)
    done = filled.close(now=now, early="CANARY: the books are due")
    assert done.closed
    (row,) = filled.lake.scan("close").collect().to_dicts()
    assert row["early_reason"] == "CANARY: the books are due"
    held = b"".join(path.read_bytes() for path in filled.pack().rglob("*") if path.is_file())
    assert b"CANARY: the books" not in held


def test_early_forces_no_other_gate(filled: Office) -> None:
    filled.find("unexplained_gap", Severity.ERROR, origin=FindingOrigin.BASELINE)
    assert codes(filled, now=datetime(2026, 3, 31, tzinfo=UTC), early="due") == ["open_findings"]


def test_a_month_without_rows_is_not_closed(filled: Office) -> None:
    done = filled.close("2026-02")
    assert [refusal.code for refusal in done.refused] == ["nothing_to_close"]
    assert "no rows of 2026-02" in done.refused[0].why


def test_the_gate_of_validation_holds_a_month_back(filled: Office) -> None:
    assert codes(filled, gate=False) == ["validation"]
    filled.find("rule_broken", Severity.ERROR, origin=FindingOrigin.VALIDATE)
    assert codes(filled) == ["validation"]
    assert codes(filled, gate=True) == []


def test_what_is_not_that_of_now_holds_it_back(filled: Office) -> None:
    """Readings, comparisons, prices and findings, one after the other; once all are made anew it is closed."""
    filled.report(60, "2026-03-09")
    assert codes(filled) == ["readings_out_of_date"]
    filled.read()
    assert codes(filled) == ["comparisons_out_of_date"]
    filled.weigh()
    filled.prices = book(gpt="3")
    assert codes(filled) == ["prices_out_of_date"]
    filled.read()
    filled.find("report_lost", Severity.INFO)  # as if an earlier reconciliation had found it
    assert codes(filled) == ["findings_out_of_date"]
    filled.weigh()
    assert codes(filled) == []


def test_an_open_error_holds_it_back_until_somebody_looks_at_it(filled: Office) -> None:
    named = filled.find("unexplained_gap", Severity.ERROR, origin=FindingOrigin.BASELINE)
    (refusal,) = filled.close().refused
    assert refusal.code == "open_findings"
    assert f"unexplained_gap {named[:8]}" in refusal.why
    acknowledge(filled.lake, named, by="finops", now=NOW)
    assert codes(filled) == []


def test_a_waiver_that_is_over_opens_it_again(office: Office) -> None:
    named = office.find("unexplained_gap", Severity.ERROR, origin=FindingOrigin.BASELINE)
    waive(office.lake, named, by="finops", reason="known", expires=date(2026, 5, 25), now=NOW)
    assert not list(open_findings(office.lake, "2026-03", date(2026, 5, 25), ClosePolicy()))
    assert list(open_findings(office.lake, "2026-03", date(2026, 5, 26), ClosePolicy()))


HALF = Materiality(amount=Decimal("0.5"))


@pytest.mark.parametrize(
    ("finding", "policy", "held"),
    [
        ({}, {"accepts": frozenset({"unexplained_gap"})}, False),
        ({}, {"accepts": frozenset({"usage_missing"})}, True),
        ({"amount": Decimal("0.49"), "currency": "USD"}, {"material": Decimal("0.5")}, False),
        ({"amount": Decimal("-0.50"), "currency": "USD"}, {"material": Decimal("0.5")}, True),
        ({"amount": None}, {"material": Decimal("0.5")}, True),  # unknown is not small
        ({"amount": Decimal("0.49"), "currency": "USD"}, {"materiality": HALF}, False),
        ({"amount": Decimal("0.50"), "currency": "USD"}, {"materiality": HALF}, True),
        ({"amount": None}, {"materiality": HALF}, True),
        ({"period": "all"}, {}, True),
        ({"period": "2026-04"}, {}, False),
        ({"severity": Severity.WARNING}, {}, False),
    ],
)
def test_the_policy_says_which_errors_count(
    office: Office, finding: dict[str, Any], policy: dict[str, Any], held: bool
) -> None:
    about = {"severity": Severity.ERROR, "origin": FindingOrigin.BASELINE, **finding}
    office.find("unexplained_gap", **about)
    refused = open_findings(office.lake, "2026-03", NOW.date(), ClosePolicy(**policy))
    assert [refusal.code for refusal in refused] == (["open_findings"] if held else [])
