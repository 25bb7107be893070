"""The end of a month: which one is due, that it is brought up to date and closed, and what comes later."""

from __future__ import annotations

import shutil
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from zoneinfo import ZoneInfo

import polars as pl
import pytest
from tests.pipeline.retention.world import frame, row
from tests.pipeline.run.conftest import FIRST_DAY, INTAKE, LATER, MONTH, copied

from weighbridge.pipeline.close.verify import verify_month
from weighbridge.pipeline.run import month as module
from weighbridge.pipeline.run import night as night_module
from weighbridge.pipeline.run.home import Home
from weighbridge.pipeline.run.month import last_month_over, month_due, monthly, months_due
from weighbridge.pipeline.run.night import night
from weighbridge.pipeline.run.retain import retain
from weighbridge.pipeline.run.step import Work
from weighbridge.pipeline.run.steps import ADJUST, ANEW, PRICE, RECONCILE, REPORT, VALIDATE
from weighbridge.schemas.errors import ConfigError

pytestmark = pytest.mark.xdist_group("nights")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without validation, baselines and releases, which a close does not rest on."""
    left = (PRICE, RECONCILE, ADJUST, REPORT)
    monkeypatch.setattr(night_module, "NIGHT", left)
    monkeypatch.setattr(module, "ANEW", tuple(step for step in ANEW if step in left or step.name == "read"))


@pytest.mark.parametrize(
    ("now", "due"),
    [
        ("2026-04-03T23:59:59+00:00", "2026-02"),
        ("2026-04-04T00:00:00+00:00", "2026-03"),
        ("2026-03-04T00:00:00+00:00", "2026-02"),  # after 28 days
        ("2028-03-04T00:00:00+00:00", "2028-02"),  # and 29
        ("2026-01-03T12:00:00+00:00", "2025-11"),
        ("2026-01-04T12:00:00+00:00", "2025-12"),
    ],
)
def test_a_month_is_due_when_its_days_of_grace_are_over(undisturbed: Home, now: str, due: str) -> None:
    assert month_due(undisturbed, datetime.fromisoformat(now)) == due


def dated(home: Home, *days: date) -> None:
    """Attempts of these days."""
    lake = home.lake()
    one = lake.scan("attempt").head(1).collect()
    lake.append("attempt", pl.concat([one.with_columns(day=pl.lit(day)) for day in days]))


def test_every_month_that_is_over_and_open_is_tried_in_order_every_day_of_a_week_and_then_once_a_week(
    undisturbed: Home, tmp_path: Path
) -> None:
    home = copied(undisturbed.root, tmp_path / "again")
    dated(home, date(2024, 6, 5), date(2025, 11, 5), date(2026, 2, 3), date(2026, 3, 2))
    late = replace(home, settings=replace(home.settings, close={**home.settings.close, "grace_days": 10}))
    tried = {
        grace: {day: months_due(of, datetime(2026, 3, day, 6, 5, tzinfo=UTC)) for day in range(1, 32)}
        for grace, of in ((3, home), (10, late))
    }
    for grace, first in ((3, 4), (10, 11)):
        days = [day for day, months in tried[grace].items() if "2026-02" in months]
        assert days == sorted({*range(first, first + 7), *range(first, 32, 7)})
    assert tried[3][4] == ("2026-01", "2026-02"), "and the first month once a week"
    assert {month for months in tried[3].values() for month in months} == {"2025-11", "2026-01", "2026-02"}


def test_neither_a_closed_month_nor_one_that_retention_took_rows_of_is_tried(undisturbed: Home, tmp_path: Path) -> None:
    at = datetime(2026, 2, 4, 6, 5, tzinfo=UTC)
    home = copied(undisturbed.root, tmp_path / "again")
    assert months_due(home, at) == ("2026-01",)
    days = {**home.settings.retention, "billing": (at.date() - FIRST_DAY).days - 2}
    short = replace(home, settings=replace(home.settings, retention=days))
    retain(short, today=at.date(), now=at, by="test", accept_clock=True)
    assert home.lake().days("attempt")
    assert months_due(home, at) == ()
    closed = copied(undisturbed.root, tmp_path / "closed")
    close = closed.lake()
    close.append("close", frame("close", [row("close", FIRST_DAY, period=MONTH)]))
    assert months_due(closed, at) == ()


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Pacific/Auckland"])
def test_the_zone_of_a_clock_makes_no_month_due_earlier(undisturbed: Home, zone: str) -> None:
    """Every hour of a year, the hours that are left out or come twice included."""
    at = datetime(2026, 1, 1, tzinfo=UTC)
    while at.year == 2026:
        assert month_due(undisturbed, at.astimezone(ZoneInfo(zone))) == month_due(undisturbed, at)
        at += timedelta(hours=1)
    assert month_due(undisturbed, datetime(2026, 4, 4, 1, tzinfo=timezone(timedelta(hours=14)))) == "2026-02"


@pytest.mark.parametrize("day", [date(2026, 3, 1), date(2026, 3, 31), date(2026, 1, 1), date(2028, 3, 1)])
def test_no_day_of_a_month_that_is_over_is_still_to_come(day: date) -> None:
    month = last_month_over(day)
    assert f"{day:%Y-%m}" > month
    assert f"{day.replace(day=1) - timedelta(days=1):%Y-%m}" == month


def test_a_month_is_brought_up_to_date_closed_and_then_left_alone(undisturbed: Home, tmp_path: Path) -> None:
    home = copied(undisturbed.root, tmp_path / "again")
    lake = home.lake()
    wrong = lake.scan("reading", first=FIRST_DAY, last=FIRST_DAY).collect()
    one_more = [pl.col(name) + 1 for name in ("output_visible", "output_total", "total")]
    lake.replace("reading", wrong.with_columns(one_more), days=[FIRST_DAY])
    done = monthly(home, MONTH, by="test", now=LATER)
    assert done.close is not None
    assert (done.close.closed, done.close.new, done.refused) == (True, True, None)
    assert done.report == home.reports / "weighbridge-2026-01.html"
    assert lake.digest("reading") == undisturbed.lake().digest("reading"), "it was read anew first"
    assert verify_month(lake, home.settings.closes, MONTH).sound

    digests = lake.digests()
    again = monthly(home, MONTH, by="test", now=LATER + timedelta(days=400))
    assert again.close is not None
    assert (again.close.closed, again.close.new, again.close.root) == (True, False, done.close.root)
    assert dict(again.work) == {}
    assert lake.digests() == digests


def test_a_clock_that_jumps_back_opens_no_closed_month(
    undisturbed: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ANEW", (PRICE,))
    home = copied(undisturbed.root, tmp_path / "again")
    first = monthly(home, MONTH, by="test", now=LATER)
    digests = home.lake().digests()
    again = monthly(home, MONTH, by="test", now=datetime(2026, 1, 20, tzinfo=UTC))
    assert first.close is not None
    assert again.close is not None
    assert (again.close.closed, again.close.new, again.close.root) == (True, False, first.close.root)
    assert home.lake().digests() == digests


@pytest.mark.system
def test_what_comes_late_for_a_closed_month_is_booked_by_the_next_night(few: Path, tmp_path: Path) -> None:
    home = copied(few, tmp_path / "home")
    segments = sorted(home.spool.glob("*.segment"))
    night(home, segments[:-1], INTAKE)
    assert monthly(home, MONTH, by="test", now=LATER).close is not None
    page = (home.reports / "weighbridge-2026-01.html").read_bytes()
    done = night(home, segments, INTAKE)
    assert done.work["adjust"].counts["booked"] > 0
    late = home.lake().scan("adjustment").collect()
    assert set(late["corrects"]) == {MONTH}
    assert set(late["period"]) == {"2026-02"}
    assert (home.reports / "weighbridge-2026-01.html").read_bytes() == page, "a closed month is told as it was closed"
    assert verify_month(home.lake(), home.settings.closes, MONTH).sound
    idle = night(home, segments, INTAKE)
    assert idle.work["adjust"] == Work()


def test_a_month_that_is_not_over_is_not_closed_and_says_why(
    undisturbed: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ANEW", (PRICE,))
    home = copied(undisturbed.root, tmp_path / "again")
    done = monthly(home, MONTH, by="test", now=datetime(2026, 2, 3, 23, 59, tzinfo=UTC))
    assert done.close is not None
    assert not done.close.closed
    assert [refusal.code for refusal in done.close.refused] == ["too_early"]
    assert home.lake().version("close") is None
    shutil.rmtree(home.root)


def test_a_gate_that_refuses_before_the_close_keeps_a_month_open(
    undisturbed: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = copied(undisturbed.root, tmp_path / "again")
    monkeypatch.setattr(module, "ANEW", (VALIDATE, REPORT))
    lake = home.lake()
    rows = lake.scan("reading", first=FIRST_DAY, last=FIRST_DAY).collect()
    lake.replace("reading", rows.with_columns(pl.col("output_total") + 1), days=[FIRST_DAY])
    done = monthly(home, MONTH, by="test", now=LATER)
    assert (done.refused, done.close, done.report) == ("validate", None, None)
    assert lake.version("close") is None


@pytest.mark.parametrize("month", ["2026-13", "2026", "", "0000-01"])
def test_what_is_no_month_is_refused(undisturbed: Home, month: str) -> None:
    with pytest.raises(ConfigError, match="is no month"):
        monthly(undisturbed, month, by="test", now=LATER)
