"""Announced token ids: which are missing, what their agent admits, and when it is too early to say."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pytest
from tests.pipeline.reconcile.conftest import DAY, SEGMENT, World, key, weighed

from weighbridge.pipeline.reconcile.reconcile import reconcile
from weighbridge.schemas.finding import Finding
from weighbridge.schemas.identity import erased

LATER = (date(2026, 3, 3), date(2026, 3, 4))


@pytest.fixture
def told(world: World) -> World:
    """A world with attempts on two days after DAY, so that DAY can get no more ids."""
    for place, day in enumerate(LATER):
        said(world, 900 + place, None, day=day)
    return world


def said(world: World, number: int, expected: int | None, *came: int, **columns: Any) -> None:
    """An attempt that announces ids, and the lengths of the runs that came."""
    about = {"day": columns.get("day", DAY), "source": columns.get("source", "agent")}
    world.attempt(number, usage_expected=False, ids_expected=expected, **columns)
    hi, lo = key(number)
    for run, length in enumerate(came):
        row = {"attempt_hi": hi, "attempt_lo": lo, "child": 0, "run": run, "stream": "output", "start": 0}
        world.add("token_run", {**row, **about, "length": length, "segment": SEGMENT})


def admits(world: World, tokens: int, reason: str = "ids_missing", **columns: Any) -> None:
    """What the agent says it lost of ids."""
    world.lost(1 if reason == "ids_missing" else 0, tokens=tokens, reason=reason, **columns)


def found(world: World, **options: Any) -> list[Finding]:
    return [finding for finding in weighed(world, **options).result.findings if finding.code == "ids_missing"]


def figures(finding: Finding) -> tuple[int, int | None, int | None, int | None, str, str]:
    """rows, expected, observed, difference, unit, confidence."""
    return (
        finding.rows,
        finding.expected,
        finding.observed,
        finding.difference,
        finding.unit,
        str(finding.confidence),
    )


def test_ids_that_came_in_any_number_of_runs_are_no_finding(told: World) -> None:
    """As many as announced, more than announced, none announced, and nothing said."""
    said(told, 1, 600, 450, 150)
    said(told, 2, 600, 601)
    said(told, 3, 0)
    said(told, 4, None)
    assert found(told) == []


def test_missing_and_short_runs_are_one_finding_per_source(told: World) -> None:
    """One attempt got nothing, one a part; what the third has too much makes up for nothing."""
    said(told, 1, 600)
    said(told, 2, 600, 450, 50)
    said(told, 3, 600, 700)
    said(told, 4, 5, source="other")
    first, second = sorted(found(told), key=lambda finding: finding.subject["source"])
    assert (dict(first.subject), figures(first)) == ({"source": "agent"}, (2, 1200, 500, -700, "tokens", "certain"))
    assert (dict(second.subject), figures(second)) == ({"source": "other"}, (1, 5, 0, -5, "tokens", "certain"))
    assert first.evidence == (key(1).to_hex(), key(2).to_hex())
    assert (first.severity, first.segments, first.first_day, first.last_day) == ("warning", (SEGMENT,), DAY, DAY)


def test_ids_of_another_source_or_attempt_do_not_count(told: World) -> None:
    """An engine and the server before it see the same attempt; only one of them handed over ids."""
    said(told, 1, 8)
    said(told, 1, None, 8, source="other")
    said(told, 2, None, 8)
    (finding,) = found(told)
    assert figures(finding)[:4] == (1, 8, 0, -8)


def test_what_the_agent_admits_is_a_known_loss_and_no_discrepancy(told: World) -> None:
    said(told, 1, 600, 150)
    admits(told, 450)
    out = weighed(told)
    assert [finding for finding in out.result.findings if finding.code == "ids_missing"] == []
    assert dict(out.finding("gap_records").subject) == {"source": "agent", "reason": "ids_missing"}


def test_what_goes_beyond_the_admission_is_told_and_nobody_can_say_whose_it_is(told: World) -> None:
    said(told, 1, 600, 150)
    said(told, 2, 600)
    admits(told, 400)
    admits(told, 600)
    (finding,) = found(told)
    assert figures(finding) == (2, 200, 150, -50, "tokens", "ambiguous")


def test_a_loss_that_is_admitted_twice_counts_once(told: World) -> None:
    """By its reason while the process lived, and in the sum of what never came when it was gone."""
    said(told, 1, 600)
    said(told, 2, 600)
    admits(told, 600, "quota")
    assert figures(*found(told))[3] == -600
    admits(told, 600)
    assert figures(*found(told))[3] == -600
    admits(told, 600)
    assert found(told) == []


def test_an_admission_of_another_source_or_day_excuses_nothing(told: World) -> None:
    said(told, 1, 600)
    admits(told, 600, source="other")
    noon = datetime(2026, 3, 3, 12, tzinfo=UTC)
    admits(told, 600, day=LATER[0], began_at=noon, ended_at=noon)
    assert figures(*found(told)) == (1, 600, 0, -600, "tokens", "certain")


def test_the_newest_days_of_the_lake_may_still_get_ids(world: World) -> None:
    """Days with attempts are counted, so a weekend without traffic opens nothing and a lone late day closes nothing."""
    said(world, 1, 600)
    assert found(world) == []
    said(world, 2, 600, day=date(2026, 3, 6))
    assert found(world) == []
    said(world, 3, 600, day=date(2026, 3, 9))
    assert [figures(finding)[0] for finding in found(world)] == [1]
    said(world, 4, 600, day=date(2026, 4, 1))
    (finding,) = found(world)
    assert (finding.period, finding.rows, finding.last_day) == ("2026-03", 2, date(2026, 3, 6))


@pytest.mark.parametrize(("grace", "rows"), [(0, 3), (1, 2), (2, 1), (3, 0), (4, 0), (9, 0)])
def test_how_many_days_stay_open_can_be_set(told: World, grace: int, rows: int) -> None:
    said(told, 1, 600)
    said(told, 2, 600, day=LATER[0])
    said(told, 3, 600, day=LATER[1])
    assert sum(finding.rows for finding in found(told, ids_grace_days=grace)) == rows


def test_the_ids_may_come_later_and_the_finding_goes(told: World) -> None:
    said(told, 1, 600)
    lake = told.lake()
    assert "ids_missing" in {finding.code for finding in reconcile(lake).findings}
    said(told, 1, None, 600)
    lake.append("token_run", told.frame("token_run"))
    assert "ids_missing" not in {finding.code for finding in reconcile(lake).findings}
    assert "ids_missing" not in set(lake.scan("finding").collect()["code"])


@pytest.mark.parametrize(
    ("columns", "rows"),
    [
        ({}, 0),
        ({"first_day": None, "last_day": None}, 0),
        ({"table_name": "attempt"}, 2),
        ({"last_day": date(2026, 3, 1)}, 2),
        ({"scope": "tenant=t_00000000000000bb"}, 1),
        ({"scope": "class=ids; tenant=t_00000000000000bb; month=2026-03"}, 1),
        ({"scope": "tenant=t_00000000000000cc"}, 2),
        ({"scope": f"tenant={erased('t_00000000000000bb')}; days=30"}, 1),
        ({"scope": f"but={erased('t_00000000000000cc')},{erased('t_00000000000000bb')}; days=30"}, 1),
        ({"scope": f"tenant={erased('t_00000000000000bb')}; bucket=4"}, 1),
        ({"scope": f"tenant={erased('t_00000000000000bb')}; bucket=3"}, 2),
        ({"scope": f"attempts=2; places={erased('t_00000000000000cc')}.0,{erased('t_00000000000000bb')}.4"}, 1),
        ({"scope": f"attempts=2; places={erased('t_00000000000000bb')}.0"}, 2),
        ({"scope": "task=code; days=3"}, 1),
        ({"scope": "task=essay; days=3"}, 2),
    ],
)
def test_what_was_erased_by_rule_is_not_missed(told: World, columns: dict[str, Any], rows: int) -> None:
    """A receipt excuses the days and the tenant it is about."""
    said(told, 1, 600)
    said(told, 2, 600, tenant="t_00000000000000bb", subject_bucket=4, task="code")
    receipt = {
        "receipt_id": "1" * 32, "rule": "ids-30-days", "scope": "class=ids", "table_name": "token_run",
        "first_day": date(2026, 3, 1), "last_day": date(2026, 3, 2), "rows": 2, "method": "deleted",
        "erased_at": datetime(2026, 4, 1, tzinfo=UTC), "erased_by": "retention",
    }  # fmt: skip
    told.add("receipt", {**receipt, **columns})
    assert sum(finding.rows for finding in found(told)) == rows


def test_only_the_last_revision_of_an_attempt_announces(told: World) -> None:
    said(told, 1, 600, 8)
    said(told, 1, 8, revision=1)
    assert found(told) == []


def test_an_implausible_announcement_is_compared_with_nothing(told: World) -> None:
    said(told, 1, 2**40 + 1)
    assert found(told) == []
