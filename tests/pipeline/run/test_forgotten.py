"""What retention took stays taken: no night makes anything anew from what is left, whatever was lost or cut off."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.pipeline.run.conftest import FIRST_DAY, INTAKE, Outcome, copied, outcome
from tests.pipeline.run.test_retain import kept

from weighbridge.pipeline.lake.found import write_findings
from weighbridge.pipeline.retention.apply import apply
from weighbridge.pipeline.retention.subject import Subject
from weighbridge.pipeline.run import night as night_module
from weighbridge.pipeline.run import retain as module
from weighbridge.pipeline.run.home import Home
from weighbridge.pipeline.run.night import Night, night
from weighbridge.pipeline.run.retain import erase_from, places_of
from weighbridge.pipeline.run.rooms import take_in
from weighbridge.pipeline.run.step import FILE
from weighbridge.pipeline.run.steps import NIGHT, PRICE, VALIDATE
from weighbridge.pipeline.simulate.simulate import simulate
from weighbridge.schemas.enumerations import FindingOrigin, Severity
from weighbridge.schemas.finding import Finding

pytestmark = pytest.mark.xdist_group("nights")

# The month is over, its days of grace as well.
LATER = date(2026, 3, 1)
AT = datetime(2026, 3, 1, 5, 5, tzinfo=UTC)
# The first three of its five days are past their time.
SHORT = (LATER - FIRST_DAY).days - 3
LEFT = tuple(step for step in NIGHT if step is not VALIDATE)
PAGE = "weighbridge-2026-01.html"


@pytest.fixture(autouse=True)
def without_validation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Validation looks at a day more each night, and what it says is not looked at here."""
    monkeypatch.setattr(night_module, "NIGHT", LEFT)


def forgetting(home: Home, **days: int) -> None:
    module.retain(kept(home, **days), today=LATER, now=AT, by="test", accept_clock=True)


def a_night(home: Home) -> Night:
    return night(home, [], INTAKE, today=LATER)


def cut_off(home: Home, monkeypatch: pytest.MonkeyPatch, **days: int) -> None:
    """Retention that comes to an end with the lake and not with its notes."""

    def killed(*given: Any, **named: Any) -> None:
        apply(*given, **named)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(module, "apply", killed)
        with pytest.raises(KeyboardInterrupt):
            forgetting(home, **days)


@pytest.fixture(scope="module")
def short(undisturbed: Home, tmp_path_factory: pytest.TempPathFactory) -> Home:
    """The installation after retention took three days of its month; only to be copied."""
    home = copied(undisturbed.root, tmp_path_factory.mktemp("short") / "home")
    forgetting(home, billing=SHORT)
    assert home.lake().days("attempt") == [FIRST_DAY + timedelta(days=3), FIRST_DAY + timedelta(days=4)]
    assert outcome(home).files == outcome(undisturbed).files
    return home


@pytest.fixture(scope="module")
def whole(short: Home) -> Outcome:
    """What retention leaves, and every night after it."""
    return outcome(short)


@pytest.mark.parametrize("notes", ["there", "lost"])
def test_retention_that_is_cut_off_before_its_notes_makes_nothing_anew(
    undisturbed: Home, whole: Outcome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, notes: str
) -> None:
    home = copied(undisturbed.root, tmp_path / "home")
    cut_off(home, monkeypatch, billing=SHORT)
    if notes == "lost":
        (home.state / FILE).unlink()
    done = a_night(home)
    assert outcome(home).other_than(whole) == []
    assert (done.months, done.reports) == ((), {})
    assert bool(done.days) is (notes == "lost")


def test_notes_that_are_lost_after_retention_cost_time_and_nothing_else(
    short: Home, whole: Outcome, tmp_path: Path
) -> None:
    home = copied(short.root, tmp_path / "home")
    (home.state / FILE).unlink()
    a_night(home)
    assert outcome(home).other_than(whole) == []
    assert {step.name: step.due(home, LATER) for step in LEFT if step.due(home, LATER)} == {}


def test_what_comes_between_a_run_that_was_cut_off_and_the_next_one_is_due(
    undisturbed: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = copied(undisturbed.root, tmp_path / "home")
    cut_off(home, monkeypatch, billing=SHORT)
    last = FIRST_DAY + timedelta(days=4)
    simulate(tmp_path / "late", attempts=3, seed=9, days=1, start=last, key=home.key)
    take_in(home, [tmp_path / "late"], INTAKE)
    monkeypatch.setattr(night_module, "NIGHT", (PRICE,))
    assert last.isoformat() in a_night(home).days


def test_a_month_that_is_not_over_is_made_of_what_there_is(short: Home, tmp_path: Path) -> None:
    """Where rows are kept for less than a month, its page is made anew with what comes until its grace is over."""
    home = copied(short.root, tmp_path / "home")
    (home.state / FILE).unlink()
    grace = replace(home, settings=replace(home.settings, close={**home.settings.close, "grace_days": 31}))
    assert a_night(grace).months == ("2026-01",)


def all_period(home: Home) -> None:
    found = Finding(
        code="source_silent", severity=Severity.WARNING, period="all", subject={"table": "attempt"}, rows=1, cure="x",
        origin=FindingOrigin.RETENTION,
    )  # fmt: skip
    write_findings(home.lake(), [found], origin=FindingOrigin.RETENTION, periods=["all"])


def test_pages_and_releases_that_went_come_back_neither_with_a_finding_nor_with_lost_notes(
    undisturbed: Home, tmp_path: Path
) -> None:
    home = copied(undisturbed.root, tmp_path / "home")
    forgetting(home, reports=10)
    gone = [home.reports / PAGE, home.reports / "shared" / "weighbridge-shared-2026-01.html"]
    assert not any(path.exists() for path in gone)
    assert home.lake().rows("shared_histogram") == 0
    all_period(home)
    a_night(home)
    assert not any(path.exists() for path in gone)
    (home.state / FILE).unlink()
    a_night(home)
    assert not any(path.exists() for path in gone)
    assert home.lake().rows("shared_histogram") == 0


def test_an_erasure_has_nothing_judged_anew_and_pages_made_again_without_whom_it_was_about(
    undisturbed: Home, tmp_path: Path
) -> None:
    home = copied(undisturbed.root, tmp_path / "home")
    tenant = home.lake().scan("attempt").collect()["tenant"].drop_nulls().mode().sort()[0]
    assert tenant in (home.reports / PAGE).read_text()
    erase_from(home, places_of(home), Subject(tenant=tenant), by="test", now=AT, billing_too=True, accept_clock=True)
    assert not (home.reports / PAGE).exists()
    digests = home.lake().digests()
    done = a_night(home)
    assert (done.days, done.months, list(done.reports)) == ((), (), ["2026-01"])
    assert home.lake().digests() == digests
    assert tenant not in (home.reports / PAGE).read_text()
