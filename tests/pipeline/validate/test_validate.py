"""A whole validation: what it finds, holds, tells and shuts, and what it leaves as it is."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.pipeline.ingest.conftest import answer_of
from tests.pipeline.validate.conftest import DAY, FILE, TODAY, Row, Rows, account, clean, take

from weighbridge.pipeline.lake import Lake
from weighbridge.pipeline.reconcile.life.status import acknowledge, waive
from weighbridge.pipeline.validate.hold import NO_ACCOUNT
from weighbridge.pipeline.validate.quarantine import entries, release
from weighbridge.pipeline.validate.rule import Gravity, Kind
from weighbridge.pipeline.validate.validate import BEFORE_RECONCILE, validate
from weighbridge.pipeline.validate.validation import Validation
from weighbridge.schemas.errors import ConfigError, LakeBusyError
from weighbridge.schemas.tables import TABLES

A_DAY = timedelta(days=1)
NOW = datetime(2026, 1, 6, 9, tzinfo=UTC)


# What these tests put rows into; the tables that validation writes itself are looked at in tests of their own.
PUT = ("attempt", "child", "usage_report", "segment")


def validated(lake: Lake, **given: Any) -> Validation:
    usual: dict[str, Any] = {"today": TODAY, "tables": PUT}
    return validate(lake, **usual | given)


def told(found: Validation) -> set[tuple[str, str, str, int]]:
    """Gravity, table, rule and rows of what does not hold; notes are left out."""
    return {(str(v.gravity), v.table, v.rule, v.rows) for v in found.broken}


def findings(lake: Lake) -> set[tuple[str, str, str, int]]:
    names = ["code", "severity", "subject", "rows"]
    return set(lake.scan("finding").filter(pl.col("origin") == "validate").select(names).collect().rows())


def held(lake: Lake) -> list[tuple[Any, ...]]:
    """Table, rule, file, line, reason, path of what is held of the lake's rows."""
    names = ["table_name", "rule", "segment", "line", "reason", "path"]
    return lake.scan("quarantine").filter(pl.col("rule").is_not_null()).select(names).sort(names).collect().rows()


def versions(lake: Lake) -> dict[str, int | None]:
    return {table: lake.version(table) for table in TABLES}


def test_clean_rows_open_the_gate_and_nothing_is_written(rows: Rows) -> None:
    rows.attempts(clean("attempt", 1), clean("attempt", 2))
    before = versions(rows.lake)
    found = validated(rows.lake)
    assert (found.gate, found.why, told(found), found.quarantined, found.findings) == (True, (), set(), 0, 0)
    assert found.rows == {"attempt": 2, "segment": 1}
    assert found.days == (DAY,)
    assert found.rules > 60
    assert versions(rows.lake) == before


def test_one_broken_row_per_rule_is_found_held_and_told(rows: Rows) -> None:
    rows.attempts(
        clean("attempt", 0),
        clean("attempt", 1, queue_us=-1),
        clean("attempt", 2, status="fine"),
        clean("attempt", 3, task="two words"),
        clean("attempt", 4) | {"route": None},
        clean("attempt", 5, temperature=float("nan")),
        clean("attempt", 6, drafted=3, accepted=1, rejected=1),
        clean("attempt", 7, attempt_hi=0, attempt_lo=1),
        clean("attempt", 8, attempt_hi=0, attempt_lo=1),
    )
    found = validated(rows.lake)
    expected = {
        "minimum.queue_us": (1, "value_below_minimum", "attempt.queue_us"),
        "word.status": (2, "word_not_in_list", "attempt.status"),
        "pattern.task": (3, "text_outside_pattern", "attempt.task"),
        "null.route": (4, "required_value_missing", "attempt.route"),
        "finite.temperature": (5, "value_not_finite", "attempt.temperature"),
        "identity.drafted": (6, "identity_broken", "attempt.drafted"),
        "unique.key": (8, "key_repeated", "attempt.key"),
    }
    warning = {"identity.drafted"}
    assert told(found) == {("warning" if rule in warning else "critical", "attempt", rule, 1) for rule in expected}
    assert held(rows.lake) == sorted(
        ("attempt", rule, FILE, line, "contract", path) for rule, (line, _, path) in expected.items()
    )
    assert findings(rows.lake) == {
        (code, "warning" if rule in warning else "error", f"table=attempt; rule={rule}; day={DAY}", 1)
        for rule, (_, code, _) in expected.items()
    }
    assert (found.gate, found.quarantined, found.findings) == (False, 7, 7)
    assert f"attempt.queue_us is at least 0: not so for 1 row on {DAY}" in found.why
    assert len(found.why) == 6
    (stored,) = rows.lake.scan("finding").filter(pl.col("code") == "value_below_minimum").collect().to_dicts()
    assert (stored["evidence"], stored["segments"]) == ([f"{1:016x}" * 2], [FILE])
    assert stored["cure"]


@pytest.mark.usefixtures("by_hand")
def test_the_same_validation_again_writes_nothing(rows: Rows) -> None:
    rows.attempts(clean("attempt", 1, queue_us=-1), clean("attempt", 2, drafted=1, accepted=2, rejected=0))
    first = validated(rows.lake)
    before = versions(rows.lake)
    again = validated(rows.lake, tables=["attempt", "segment"])
    assert versions(rows.lake) == before
    assert [v for v in again.violations if v.table == "attempt"] == [
        v for v in first.violations if v.table == "attempt"
    ]


@pytest.mark.usefixtures("by_hand")
def test_rows_that_are_mended_leave_quarantine_and_their_findings_go(rows: Rows) -> None:
    rows.attempts(clean("attempt", 1, queue_us=-1))
    assert not validated(rows.lake).gate
    rows.lake.replace("attempt", rows.lake.scan("attempt").collect().with_columns(queue_us=pl.lit(1)), days=[DAY])
    assert validated(rows.lake).gate
    assert held(rows.lake) == []
    assert findings(rows.lake) == set()


def test_a_warning_does_not_shut_the_gate(rows: Rows) -> None:
    rows.attempts(clean("attempt", 1, drafted=3, accepted=1, rejected=1))
    found = validated(rows.lake)
    assert found.gate
    assert told(found) == {("warning", "attempt", "identity.drafted", 1)}


def test_notes_are_on_the_page_and_nowhere_else(rows: Rows) -> None:
    rows.attempts(clean("attempt", 1, tenant="unassigned", undated=True))
    found = validated(rows.lake)
    assert {(str(v.gravity), v.rule, v.rows) for v in found.violations} == {
        ("info", "note.tenant", 1),
        ("info", "note.undated", 1),
    }
    assert (found.gate, found.findings, findings(rows.lake), held(rows.lake)) == (True, 0, set(), [])


def test_more_rows_than_are_held_are_counted_and_the_first_by_line_are_held(rows: Rows) -> None:
    rows.attempts(*(clean("attempt", n, queue_us=-1) for n in range(50)))
    (violation,) = (v for v in validated(rows.lake, most=30).violations if v.rule == "minimum.queue_us")
    assert (violation.rows, violation.held) == (50, 30)
    assert [line for *_, line, _, _ in held(rows.lake)] == list(range(30))
    assert len(violation.evidence) == 20
    assert violation.sentence().endswith("50 rows on 2026-01-05; 20 of them are not held")
    (cure,) = rows.lake.scan("finding").collect()["cure"]
    assert "More rows break it than are held by their place: `weighbridge quarantine release --table attempt" in cure
    (all_held,) = validated(rows.lake, most=50).violations
    assert (all_held.held, "More rows" in all_held.finding().cure) == (50, False)


@pytest.mark.usefixtures("by_hand")
def test_one_rule_has_one_cure_however_many_rows_break_it_on_each_day(rows: Rows) -> None:
    """Priorities are grouped by cure: with figures in it, every day would be one of its own."""
    for day, how_many in ((DAY, 3), (DAY + A_DAY, 5)):
        rows.put("attempt", *(clean("attempt", n, day, attempt_hi=n, queue_us=-1) for n in range(how_many)))
    broken = [v for v in validated(rows.lake, most=2).violations if v.rule == "minimum.queue_us"]
    assert [(v.rows, v.held) for v in broken] == [(3, 2), (5, 2)]
    assert len({v.finding().cure for v in broken}) == 1


@pytest.mark.usefixtures("by_hand")
def test_a_released_row_opens_the_gate_for_itself_alone(rows: Rows) -> None:
    rows.attempts(clean("attempt", 1, queue_us=-1), clean("attempt", 2, queue_us=-2))
    validated(rows.lake)
    first, second = entries(rows.lake)
    assert release(rows.lake, [first], by="ann", reason="a clock went back", now=NOW) == 1
    found = validated(rows.lake)
    (violation,) = found.violations
    assert (found.gate, violation.rows, violation.released) == (False, 1, 1)
    assert "1 more were released" in violation.sentence()
    release(rows.lake, [second], by="ann", reason="the same", now=NOW)
    assert validated(rows.lake).gate
    assert held(rows.lake) == []


@pytest.mark.usefixtures("by_hand")
def test_a_row_is_released_from_a_rule_and_not_from_others(rows: Rows) -> None:
    rows.attempts(clean("attempt", 1, queue_us=-1, status="fine"))
    validated(rows.lake)
    (queue,) = (entry for entry in entries(rows.lake) if entry.rule == "minimum.queue_us")
    release(rows.lake, [queue], by="ann", reason="a clock went back", now=NOW)
    assert told(validated(rows.lake)) == {("critical", "attempt", "word.status", 1)}


@pytest.mark.usefixtures("by_hand")
@pytest.mark.parametrize("decide", ["waive", "acknowledge"])
def test_only_an_open_finding_shuts_the_gate(rows: Rows, decide: str) -> None:
    rows.attempts(*(clean("attempt", n, queue_us=-1) for n in range(4)))
    (violation,) = validated(rows.lake, most=3).violations
    finding = violation.finding().finding_id
    if decide == "waive":
        waive(rows.lake, finding, by="ann", reason="known", expires=TODAY, now=NOW)
    else:
        acknowledge(rows.lake, finding, by="ann", now=NOW)
    found = validated(rows.lake)
    assert (found.gate, found.why, found.violations[0].shuts) == (True, (), False)
    assert validated(rows.lake, today=TODAY + A_DAY).gate is (decide == "acknowledge"), "a waiver ends"


@pytest.mark.usefixtures("by_hand")
def test_a_waiver_does_not_cover_the_next_day(rows: Rows) -> None:
    rows.put(
        "attempt", clean("attempt", 1, queue_us=-1), clean("attempt", 2, DAY + A_DAY, queue_us=-1, arrived_at=None)
    )
    rows.put("segment", account(rows=2))
    first = next(v for v in validated(rows.lake).violations if v.day == DAY)
    waive(rows.lake, first.finding().finding_id, by="ann", reason="known", expires=TODAY, now=NOW)
    assert validated(rows.lake).why == (f"attempt.queue_us is at least 0: not so for 1 row on {DAY + A_DAY}",)


def test_a_lake_without_rows_has_nothing_to_hold_to_anything(rows: Rows) -> None:
    found = validated(rows.lake, tables=None)
    assert (found.gate, found.rows, found.days, found.rules) == (True, {}, (), 0)
    assert {each.table for each in found.unjudged} == set(TABLES)


def test_a_day_without_rows_is_looked_at_and_said_to_have_none(rows: Rows) -> None:
    rows.attempts(clean("attempt", 1))
    found = validated(rows.lake, days=[DAY + A_DAY], tables=["attempt"])
    assert (found.gate, found.rows, found.days) == (True, {"attempt": 0}, (DAY + A_DAY,))
    assert [(each.table, each.why) for each in found.unjudged] == [("attempt", "it has none on these days")]


def test_a_source_that_did_not_deliver_is_a_finding(rows: Rows) -> None:
    number = 0
    for back in range(20, 0, -1):
        rows.put("attempt", *(clean("attempt", number + n, DAY - back * A_DAY, arrived_at=None) for n in range(40)))
        number += 40
    rows.put("segment", account(rows=number))
    found = validated(rows.lake, days=[DAY])
    (violation,) = (v for v in found.violations if v.gravity is Gravity.WARNING)
    assert (violation.kind, violation.source, violation.expected, violation.observed) == (Kind.LOW, "name", 10, 0)
    assert found.gate
    assert findings(rows.lake) == {
        ("volume_low", "warning", f"table=attempt; rule=volume_low; source=name; day={DAY}", 0)
    }
    silent = validated(rows.lake, days=[DAY], today=DAY + 5 * A_DAY)
    assert {v.sentence() for v in silent.violations if v.kind is Kind.FRESH} == {
        "attempt: name has been silent for 6 days; 2 are usual"
    }


def test_two_tables_are_held_each_to_its_own(rows: Rows) -> None:
    rows.put("attempt", clean("attempt", 1, queue_us=-1))
    rows.put("child", clean("child", 2, kind="nothing"))
    rows.put("segment", account(rows=2))
    assert told(validated(rows.lake)) == {
        ("critical", "attempt", "minimum.queue_us", 1),
        ("critical", "child", "word.kind", 1),
    }
    assert [(table, line) for table, _, _, line, _, _ in held(rows.lake)] == [("attempt", 1), ("child", 2)]


@pytest.mark.usefixtures("by_hand")
def test_a_run_over_one_table_or_day_leaves_what_was_found_elsewhere(rows: Rows) -> None:
    later = DAY + A_DAY
    rows.put("attempt", clean("attempt", 1, queue_us=-1), clean("attempt", 2, later, queue_us=-1, arrived_at=None))
    rows.put("child", clean("child", 3, kind="nothing"))
    rows.put("segment", account(rows=3))
    validated(rows.lake)
    everything = findings(rows.lake), held(rows.lake)
    assert (len(everything[0]), len(everything[1])) == (3, 3)
    validated(rows.lake, tables=["child"])
    validated(rows.lake, days=[later])
    assert (findings(rows.lake), held(rows.lake)) == everything
    rows.lake.replace("attempt", rows.lake.scan("attempt").filter(pl.col("day") == DAY).collect(), days=[DAY, later])
    validated(rows.lake, days=[later], tables=["attempt"])
    assert {subject for _, _, subject, _ in findings(rows.lake)} == {
        f"table=attempt; rule=minimum.queue_us; day={DAY}",
        f"table=child; rule=word.kind; day={DAY}",
    }
    assert [line for _, _, _, line, _, _ in held(rows.lake)] == [1, 3]


def test_rows_of_a_file_that_was_not_taken_in_to_its_end_shut_the_gate(rows: Rows) -> None:
    rows.attempts(clean("attempt", 1))
    rows.put("attempt", clean("attempt", 2, segment="b" * 64))
    found = validated(rows.lake)
    assert told(found) == {("critical", "attempt", "file.segment", 1)}
    assert [row[2:4] for row in held(rows.lake)] == [("b" * 64, 2)]
    assert rows.lake.scan("quarantine").collect()["importer"].to_list() == [NO_ACCOUNT]


@pytest.mark.usefixtures("by_hand")
def test_rows_that_are_gone_are_told_with_their_files(rows: Rows, lines: Callable[..., Path]) -> None:
    (file,) = take(rows.lake, lines("a.jsonl", answer_of(1), answer_of(2))).files
    assert validated(rows.lake).gate
    for table in ("attempt", "usage_report"):
        kept = rows.lake.scan(table).filter(pl.col("segment_row") == 0).collect()
        rows.lake.replace(table, kept, days=rows.lake.days(table))
    found = validated(rows.lake)
    (violation,) = (v for v in found.violations if v.gravity is Gravity.CRITICAL)
    assert (violation.kind, violation.rows, violation.unit) == (Kind.MISSING, 1, "files")
    assert violation.segments == (file.segment,)
    assert ("rows_missing", "error", "table=segment; rule=missing.rows", 1) in findings(rows.lake)
    # A run over days on which this file has no rows does not look at its account, and keeps what was found.
    validated(rows.lake, days=[DAY + 9 * A_DAY])
    assert ("rows_missing", "error", "table=segment; rule=missing.rows", 1) in findings(rows.lake)


def test_an_account_that_does_not_add_up_shuts_the_gate(rows: Rows) -> None:
    rows.put("attempt", clean("attempt", 1))
    rows.put("segment", account(rows=1, rows_in=2))
    assert told(validated(rows.lake)) == {("critical", "segment", "identity.account", 1)}
    assert held(rows.lake) == [], "an account is no record of a file"


def test_records_that_could_not_be_read_stay_where_they_are(rows: Rows, lines: Callable[..., Path]) -> None:
    take(rows.lake, lines("a.jsonl", answer_of(1), b"torn"))
    before = rows.lake.scan("quarantine").collect()
    found = validated(rows.lake)
    assert found.gate
    assert rows.lake.scan("quarantine").collect().equals(before)


def test_findings_of_other_rooms_stay(rows: Rows) -> None:
    rows.put("finding", clean("finding", 1, origin="reconcile", period="2026-01"))
    rows.attempts(clean("attempt", 1, queue_us=-1))
    validated(rows.lake)
    assert set(rows.lake.scan("finding").collect()["origin"]) == {"reconcile", "validate"}


def test_a_table_that_does_not_exist_is_named(rows: Rows) -> None:
    with pytest.raises(ConfigError, match="there is no table 'atempt'; known are request_scope, attempt"):
        validated(rows.lake, tables=["atempt"])


def test_nothing_is_judged_while_somebody_writes(rows: Rows) -> None:
    rows.attempts(clean("attempt", 1))
    other = Lake.open(rows.lake.root)
    with other.lock(), pytest.raises(LakeBusyError):
        validated(rows.lake)


def test_a_night_looks_at_what_comes_before_reconciling() -> None:
    conclusions = {"priced_amount", "reconciled", "gap_cause", "finding", "baseline", "close", "receipt"}
    assert set(BEFORE_RECONCILE) < set(TABLES)
    assert not set(BEFORE_RECONCILE) & conclusions


class Killed(BaseException):
    """The process ends here."""


@pytest.mark.usefixtures("by_hand")
@pytest.mark.parametrize("commit", range(2))
def test_killed_between_its_commits_a_validation_is_made_whole_by_the_next(
    rows: Rows, monkeypatch: pytest.MonkeyPatch, commit: int
) -> None:
    """Quarantine and findings are two commits: killed before either, the next run comes to the same lake."""
    broken: list[Row] = [clean("attempt", 1, queue_us=-1), clean("attempt", 2, status="fine")]
    rows.attempts(*broken)
    done = 0
    replace = Lake.replace

    def until(lake: Lake, *arguments: Any, **named: Any) -> None:
        nonlocal done
        if done == commit:
            raise Killed
        done += 1
        replace(lake, *arguments, **named)

    with monkeypatch.context() as patch:
        patch.setattr(Lake, "replace", until)
        with pytest.raises(Killed):
            validated(rows.lake)
    assert not validated(rows.lake).gate
    assert len(held(rows.lake)) == len(findings(rows.lake)) == 2


def test_days_may_be_given_in_any_order_and_more_than_once(rows: Rows) -> None:
    rows.attempts(clean("attempt", 1))
    days: list[date] = [DAY + A_DAY, DAY, DAY]
    assert validated(rows.lake, days=days).days == (DAY, DAY + A_DAY)
