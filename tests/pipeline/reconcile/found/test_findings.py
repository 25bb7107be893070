"""Every kind of finding: when it is found, what its figures are, and what it says to do."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import polars as pl
import pytest
from tests.pipeline.reconcile.conftest import DAY, SEGMENT, World, key, weighed

from weighbridge.pipeline.reconcile.explain.cause import all_causes
from weighbridge.schemas.finding import Finding

FILE = "b" * 64


def figures(finding: Finding) -> tuple[int, int | None, int | None, int | None, str]:
    """rows, expected, observed, difference, unit."""
    return finding.rows, finding.expected, finding.observed, finding.difference, finding.unit


def matched(world: World, number: int, **columns: Any) -> None:
    """An attempt and the report that agrees with it."""
    world.attempt(number, input_computed=100, output_computed=10, **columns)
    world.reading(number, input_total=100, output_total=10)


def test_a_clean_month_has_no_finding(world: World) -> None:
    """Everything matches and every attempt has a tenant."""
    matched(world, 1)
    matched(world, 2)
    assert weighed(world).codes == []


def test_a_cause_is_one_finding_per_provider_and_model(world: World) -> None:
    """Both directions of an attempt count once; expected is what would have been reported without the cause."""
    for number, model in ((1, "m-1"), (2, "m-1"), (3, "m-2")):
        world.attempt(number, input_computed=100, output_computed=10, model_served=model)
        for report in (0, 1):
            world.reading(number, input_total=100, output_total=10, model=model, report=report)
    first, second = sorted(
        (f for f in weighed(world).result.findings if f.code == "duplicate_report"), key=lambda f: f.subject["model"]
    )
    assert figures(first) == (2, 220, 440, 220, "tokens")
    assert figures(second) == (1, 110, 220, 110, "tokens")
    assert dict(first.subject) == {"provider": "openai", "model": "m-1"}
    assert first.evidence == (key(1).to_hex(), key(2).to_hex())
    assert (first.segments, first.first_day, first.last_day) == ((SEGMENT,), DAY, DAY)
    assert (first.cause, first.confidence, first.grade) == ("duplicate_report", "certain", "G1")


def test_evidence_is_the_lowest_twenty_ids_by_their_digits(world: World) -> None:
    """A key whose first half is negative comes last, not first."""
    low, high = range(1, 25), (-(2**63), 7)
    for number in low:
        world.attempt(number, input_computed=100)
    world.attempt(99, attempt_hi=high[0], attempt_lo=high[1], input_computed=100)
    finding = weighed(world).finding("usage_missing")
    assert finding.rows == 25
    assert finding.evidence == tuple(key(number).to_hex() for number in range(1, 21))


def test_missing_usage_of_unobserved_attempts_is_counted(world: World) -> None:
    """Two attempts owe a report; of one nothing is known, so the tokens are those of the other."""
    world.attempt(1, input_computed=100, output_computed=10)
    world.attempt(2)
    assert figures(weighed(world).finding("usage_missing")) == (2, 110, 0, -110, "tokens")


def test_a_report_an_aborted_attempt_never_got_is_counted_as_aborted_alone(world: World) -> None:
    """Of three attempts without a report two were aborted, one of them unobserved."""
    world.attempt(1, input_computed=100, output_computed=10)
    world.attempt(2, input_computed=30, output_computed=4, status="aborted")
    world.attempt(3, status="aborted")
    done = weighed(world)
    assert figures(done.finding("usage_missing")) == (1, 110, 0, -110, "tokens")
    assert figures(done.finding("aborted")) == (2, 34, 0, -34, "tokens")


def test_an_unexplained_gap_is_an_error_in_its_direction(world: World) -> None:
    """Plus five in the input and minus five in the output do not cancel out."""
    world.attempt(1, input_computed=100, output_computed=50)
    world.reading(1, input_total=105, output_total=45)
    found = {f.subject["direction"]: f for f in weighed(world).result.findings}
    assert figures(found["input"]) == (1, 100, 105, 5, "tokens")
    assert figures(found["output"]) == (1, 50, 45, -5, "tokens")
    assert {(f.code, f.severity, f.confidence) for f in found.values()} == {("unexplained_gap", "error", "none")}


def test_reports_nobody_saw_are_found_where_the_provider_is_watched(world: World) -> None:
    """Attempt 1 of openai was observed; of azure nothing here ever sees anything."""
    matched(world, 1)
    world.reading(2, input_total=100)
    world.reading(3, input_total=100, provider="azure")
    finding = weighed(world).finding("unmatched_report")
    assert figures(finding) == (1, 0, 1, 1, "reports")
    assert dict(finding.subject) == {"provider": "openai", "model": "m-1"}
    assert finding.evidence == (key(2).to_hex(),)


def test_reports_beyond_the_known_loss_are_found_with_both_numbers(world: World) -> None:
    """Three reports nobody saw, two attempts lost: one too many, and it cannot be said which."""
    for number in (1, 2, 3):
        world.reading(number, input_total=100)
        world.priced(number, amount=Decimal("0.5"))
    world.lost(2)
    out = weighed(world)
    finding = out.finding("unmatched_report")
    assert figures(finding) == (3, 2, 3, 1, "reports")
    assert (finding.cause, finding.confidence) == ("capture_gap", "ambiguous")
    assert dict(finding.subject) == {"loss": "2026-03-02/2026-03-02"}
    assert (finding.amount, finding.currency) == (Decimal("1.5"), "USD")
    assert "unexplained_gap" not in out.codes


@pytest.mark.parametrize(
    ("verdict", "code", "severity"),
    [
        ("CONTRADICTORY", "contradictory_usage", "warning"),
        ("UNKNOWN", "unknown_usage", "notice"),
        ("ASSUMED", "assumed_usage", "info"),
    ],
)
def test_verdicts_below_proved_are_findings(verdict: str, code: str, severity: str, world: World) -> None:
    """One per provider, API and model."""
    world.reading(1, verdict=verdict)
    finding = weighed(world).finding(code)
    assert (finding.severity, figures(finding)) == (severity, (1, None, None, None, "reports"))
    assert dict(finding.subject) == {"provider": "openai", "api": "openai_chat", "model": "m-1"}


def test_a_report_without_counts_is_missing_and_not_unknown(world: World) -> None:
    """It is one finding, not two."""
    world.attempt(1, input_computed=100)
    world.reading(1, verdict="UNKNOWN", flags=["usage_missing"])
    assert weighed(world).codes == ["usage_missing"]


def test_flags_of_readings_are_findings(world: World) -> None:
    """A known one has its own severity and cure, a new one is a notice."""
    world.attempt(1)
    world.attempt(2)
    world.reading(1, input_total=1, flags=["total_mismatch", "a_new_flag"])
    world.reading(2, input_total=1, flags=["total_mismatch"])
    found = {f.code: (f.severity, f.rows) for f in weighed(world).result.findings}
    assert found == {"total_mismatch": ("warning", 2), "a_new_flag": ("notice", 1)}


def test_a_revised_report_is_told(world: World) -> None:
    """The last revision counts, and that there was one is said."""
    world.attempt(1)
    world.reading(1, input_total=100, revision=2)
    finding = weighed(world).finding("report_revised")
    assert (finding.rows, finding.subject["source"]) == (1, "agent")


@pytest.mark.parametrize("status", ["no_price", "class_unpriced", "split_unknown"])
def test_tokens_without_a_price_are_told_with_the_reason(status: str, world: World) -> None:
    """110 tokens of this model nobody can price."""
    matched(world, 1)
    world.priced(1, status=status, price_id=None, currency=None)
    finding = weighed(world).finding("price_unknown")
    assert figures(finding) == (1, None, 110, None, "tokens")
    assert dict(finding.subject) == {"provider": "openai", "model": "m-1", "status": status}
    assert ("no price file helps" in finding.cure) == (status == "split_unknown")


def test_figures_no_attempt_can_have_are_told_and_never_added(world: World) -> None:
    """Two reports of 2**63 - 1 tokens would overflow any sum; they stay evidence, and nothing is compared with them."""
    most = 2**63 - 1
    world.attempt(1, input_computed=100, output_computed=10)
    world.reading(1, input_total=most, output_total=10)
    world.reading(1, input_total=most, output_total=10, report=1)
    world.attempt(2, input_computed=most, output_computed=10)
    world.reading(2, input_total=100, output_total=10)
    world.priced(1, status="no_price", price_id=None, currency=None)
    out = weighed(world)
    assert out.outcome(1) == (100, None, None, None, "NOT_COMPARED")
    assert out.outcome(2) == (None, 100, None, None, "NOT_COMPARED")
    assert out.outcome(2, "output") == (10, 10, 0, 0, "MATCHED")
    found = {f.subject["table"]: f.rows for f in out.result.findings if f.code == "implausible_count"}
    assert found == {"reading": 2, "attempt": 1}
    assert out.finding("price_unknown").observed == 10


def test_figures_far_below_nought_are_told_as_well(world: World) -> None:
    """Nothing is compared with them either, so they must not go in silence."""
    least = -(2**63)
    world.attempt(1, input_computed=least, output_computed=10)
    world.reading(1, input_total=100, output_total=10)
    world.attempt(2, input_computed=100, output_computed=10)
    world.reading(2, input_total=least, output_total=10)
    world.attempt(3, input_computed=-(2**40), output_computed=10)
    world.reading(3, input_total=-(2**40), output_total=10)
    world.priced(2, status="no_price", price_id=None, currency=None)
    out = weighed(world)
    assert [out.outcome(number)[2:] for number in (1, 2, 3)] == [
        (None, None, "NOT_COMPARED"),
        (None, None, "NOT_COMPARED"),
        (0, 0, "MATCHED"),
    ]
    found = {f.subject["table"]: f.rows for f in out.result.findings if f.code == "implausible_count"}
    assert found == {"reading": 1, "attempt": 1}
    assert out.finding("price_unknown").observed == 10


def test_the_largest_plausible_figures_add_up(world: World) -> None:
    """One below the limit is compared like any other."""
    limit = 2**40
    world.attempt(1, input_computed=limit)
    world.reading(1, input_total=limit)
    world.reading(1, input_total=limit, report=1)
    assert weighed(world).outcome(1) == (limit, 2 * limit, limit, 0, "EXPLAINED")


def test_records_without_a_time_and_without_a_tenant_are_told(world: World) -> None:
    """Two of three attempts; a report nobody saw has no tenant to name."""
    matched(world, 1, undated=True)
    matched(world, 2, tenant="unassigned")
    matched(world, 3, tenant="unassigned")
    world.reading(4, input_total=5)
    world.lost(1)
    out = weighed(world)
    assert figures(out.finding("undated_records")) == (1, None, None, None, "attempts")
    assert figures(out.finding("unassigned_tenant")) == (2, None, 2, None, "attempts")
    assert out.finding("unassigned_tenant").cure.startswith("2 of 3 attempts (66.7 %) have no tenant")


def test_pseudonyms_of_another_key_are_found(world: World) -> None:
    """Only where the installation's own key is known."""
    matched(world, 1, tenant_key_id="0" * 12)
    matched(world, 2, tenant_key_id="f" * 12)
    assert weighed(world).codes == []
    finding = weighed(world, key_id="0" * 12).finding("foreign_key_rows")
    assert (finding.rows, finding.subject["tenant_key_id"]) == (1, "f" * 12)
    assert finding.evidence == (key(2).to_hex(),)


def test_one_identifier_under_two_attempts_is_ambiguous(world: World) -> None:
    """The same response id twice; a client id that only one attempt has is fine, even from two sources."""
    for number, hi, kind, source in (
        (1, 5, "provider_response_id", "agent"),
        (2, 5, "provider_response_id", "agent"),
        (1, 6, "client_request_id", "agent"),
        (1, 6, "client_request_id", "other"),
    ):
        attempt_hi, attempt_lo = key(number)
        ids = {"alias_hi": hi, "alias_lo": 1, "kind": kind, "attempt_hi": attempt_hi, "attempt_lo": attempt_lo}
        world.add("alias", {**ids, "day": DAY, "source": source, "segment": SEGMENT})
    matched(world, 1)
    matched(world, 2)
    finding = weighed(world).finding("ambiguous_match")
    assert (figures(finding), dict(finding.subject)) == (
        (2, None, 2, None, "attempts"),
        {"kind": "provider_response_id"},
    )


def test_what_could_not_be_read_is_found_by_importer_and_reason(world: World) -> None:
    """Its evidence is the file; there is no attempt. A record counts once, however many of its values are odd."""
    matched(world, 1)
    place = {"segment": FILE, "day": DAY, "source": "import", "importer": "mapped"}
    for line, reason, path in (
        (3, "fraction", "usage.input_total"),
        (3, "fraction", "usage.output_total"),
        (4, "fraction", "usage.input_total"),
        (9, "range", "usage.total"),
    ):
        world.add("quarantine", {**place, "line": line, "reason": reason, "path": path})
    found = {f.subject["reason"]: f for f in weighed(world).result.findings}
    assert {reason: figures(f) for reason, f in found.items()} == {
        "fraction": (2, 0, 2, 2, "rows"),
        "range": (1, 0, 1, 1, "rows"),
    }
    assert (found["range"].segments, found["range"].evidence, found["range"].severity) == ((FILE,), (), "warning")


def test_rows_of_two_tables_of_a_segment_are_two_records(world: World) -> None:
    """Both stand on line 3, each of its own table; the attempt has two odd values."""
    matched(world, 1)
    place = {"segment": FILE, "day": DAY, "source": "agent", "importer": "segment", "line": 3, "reason": "schema"}
    for path in ("attempt.model_served", "attempt.task", "child.model"):
        world.add("quarantine", {**place, "path": path})
    (found,) = weighed(world).result.findings
    assert figures(found) == (2, 0, 2, 2, "rows")


def test_a_stored_row_that_breaks_a_rule_is_not_one_that_could_not_be_read(world: World) -> None:
    """It is in quarantine too, and validation made the finding about it."""
    matched(world, 1)
    row = {"segment": FILE, "line": 1, "day": DAY, "source": "agent", "importer": "segment", "reason": "contract"}
    world.add("quarantine", {**row, "path": "attempt.task", "table_name": "attempt", "rule": "pattern.task"})
    assert weighed(world).result.findings == ()


def test_what_agents_lost_is_told_by_reason(world: World) -> None:
    """Five attempts in two records of one reason."""
    matched(world, 1)
    world.lost(2)
    world.lost(3)
    world.lost(1, reason="no_key")
    found = {f.subject["reason"]: figures(f) for f in weighed(world).result.findings}
    assert found == {"buffer_full": (2, 0, 5, 5, "attempts"), "no_key": (1, 0, 1, 1, "attempts")}


def test_a_month_with_nothing_but_unreadable_rows_is_looked_at(world: World) -> None:
    """And said to have no attempts."""
    row = {"segment": FILE, "line": 1, "day": date(2026, 5, 1), "source": "import", "importer": "mapped"}
    world.add("quarantine", {**row, "reason": "not_json"})
    assert sorted(weighed(world).codes) == ["empty_month", "quarantined_rows"]


def test_every_finding_is_a_row_with_a_cure(world: World) -> None:
    """Rows of the table say what the values say."""
    world.attempt(1, input_computed=100, output_computed=50)
    world.reading(1, input_total=105, output_total=50, flags=["integral_float"])
    out = weighed(world)
    rows = {row["finding_id"]: row for row in out.lake.scan("finding").collect().to_dicts()}
    for finding in out.result.findings:
        row = rows[finding.finding_id]
        assert row["cure"] == finding.cure
        assert row["cure"].endswith(".")
        assert (row["code"], row["severity"], row["rows"]) == (finding.code, finding.severity, finding.rows)
        assert row["subject"] == "; ".join(f"{name}={value}" for name, value in finding.subject.items())


def test_a_finding_keeps_its_id_when_its_figures_change(world: World) -> None:
    """So what was decided about it stays."""
    world.attempt(1, input_computed=100)
    first = weighed(world).finding("usage_missing")
    world.attempt(2, input_computed=100)
    second = weighed(world).finding("usage_missing")
    assert (first.finding_id, first.rows, second.rows) == (second.finding_id, 1, 2)


def test_the_codes_of_causes_and_of_other_findings_are_different_words(world: World) -> None:
    """A cause code always means the finding of that cause."""
    world.attempt(1, input_computed=100)
    out = weighed(world)
    causes = {cause.code for cause in all_causes()}
    found = out.lake.scan("finding").collect()
    assert found.filter(pl.col("cause") == pl.col("code"))["code"].is_in(list(causes)).all()
