"""What a gate let pass because of a waiver is looked at again when the waiver has ended."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

from weighbridge.pipeline.lake.found import write_findings
from weighbridge.pipeline.reconcile.life.status import acknowledge, waive
from weighbridge.pipeline.run.demo import new_home
from weighbridge.pipeline.run.home import Home
from weighbridge.pipeline.run.step import stamps_of
from weighbridge.pipeline.run.steps import VALIDATE
from weighbridge.schemas.enumerations import FindingOrigin, Severity
from weighbridge.schemas.finding import Finding

DAYS = [date(2026, 1, 5), date(2026, 1, 6), date(2026, 2, 3)]
LAST = date(2026, 2, 14)
NOW = datetime(2026, 2, 12, 4, tzinfo=UTC)
AFTER = LAST + timedelta(days=1)


def broken(*, day: date | None, origin: FindingOrigin = FindingOrigin.VALIDATE, period: str = "2026-01") -> Finding:
    return Finding(
        code="range_broken", severity=Severity.ERROR, period=period, subject={"table": "gap"}, rows=1, cure="Look.",
        origin=origin, first_day=day, last_day=day,
    )  # fmt: skip


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """An installation with rows on three days, all of them looked at."""
    home = new_home(tmp_path / "home", 3)
    rows = [{"day": day, "source": "agent", "reason": "quota", "attempts": 1} for day in DAYS]
    home.lake().append("gap", pl.DataFrame(rows))
    return home


def looked_at(home: Home, today: date) -> None:
    stamps_of(home).put(VALIDATE.name, VALIDATE.marks(home, today))


def again(home: Home, today: date) -> list[date]:
    """The days with rows that are due."""
    return [day for day in DAYS if day.isoformat() in VALIDATE.due(home, today)]


@pytest.mark.parametrize(
    ("finding", "days"),
    [
        (broken(day=DAYS[0]), DAYS[:1]),
        (broken(day=None), DAYS[:2]),
        (broken(day=None, period="all"), DAYS),
        (broken(day=DAYS[0], origin=FindingOrigin.RECONCILE), []),
    ],
    ids=["a day", "a month", "the installation", "no gate of this step"],
)
def test_what_a_waiver_let_pass_is_due_from_the_day_after_its_last(
    home: Home, finding: Finding, days: list[date]
) -> None:
    lake, name = home.lake(), finding.finding_id
    write_findings(lake, [finding], origin=finding.origin, periods=None)
    waive(lake, name, by="test", reason="known", expires=LAST, now=NOW)
    looked_at(home, LAST)
    assert again(home, LAST) == []
    assert again(home, AFTER) == days
    assert again(home, AFTER + timedelta(days=9)) == days, "until somebody looks"
    looked_at(home, AFTER)
    assert again(home, AFTER) == []


def test_what_is_decided_again_is_due_when_that_ends_or_not_at_all(home: Home) -> None:
    lake, finding = home.lake(), broken(day=DAYS[0])
    write_findings(lake, [finding], origin=finding.origin, periods=None)
    waive(lake, finding.finding_id, by="test", reason="known", expires=LAST, now=NOW)
    looked_at(home, LAST)
    waive(lake, finding.finding_id, by="test", reason="known", expires=AFTER, now=NOW)
    assert again(home, AFTER) == []
    assert again(home, AFTER + timedelta(days=1)) == DAYS[:1]
    acknowledge(lake, finding.finding_id, by="test", now=NOW)
    assert again(home, AFTER + timedelta(days=1)) == []
