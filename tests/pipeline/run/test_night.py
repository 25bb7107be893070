"""A night does what is due, whatever became of the nights before it, and nothing else."""

from __future__ import annotations

import csv
import resource
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import polars as pl
import pytest
from tests.pipeline.run.conftest import FIRST_DAY, INTAKE, TODAY, copied, outcome

from weighbridge.pipeline.lake import Lake
from weighbridge.pipeline.run import backfill as backfill_module
from weighbridge.pipeline.run import night as module
from weighbridge.pipeline.run.backfill import backfill
from weighbridge.pipeline.run.demo import new_home
from weighbridge.pipeline.run.home import Home
from weighbridge.pipeline.run.night import Intake, night
from weighbridge.pipeline.run.rooms import take_in
from weighbridge.pipeline.run.step import FILE, Work, no_news, stamps_of
from weighbridge.pipeline.run.steps import PRICE, READ, RECONCILE, REPORT, SHARE
from weighbridge.pipeline.run.turn import turn
from weighbridge.pipeline.simulate.simulate import simulate
from weighbridge.schemas.errors import ConfigError, LakeBusyError, Transient
from weighbridge.schemas.segment import write_segment

# One worker makes the night that all others are held against.
pytestmark = pytest.mark.xdist_group("nights")

DAYS = [FIRST_DAY + timedelta(days=number) for number in range(5)]
MONTHS = ("2026-01",)
QUALITY = "reports/data-quality-last-run.html"


def texts(days: list[date]) -> tuple[str, ...]:
    return tuple(day.isoformat() for day in days)


WEIGHING = (PRICE, RECONCILE, SHARE)


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nights and backfills without validation, baselines and pages, which take most of the time."""
    monkeypatch.setattr(module, "NIGHT", WEIGHING)
    monkeypatch.setattr(backfill_module, "ANEW", (READ, *WEIGHING))


def weighed(home: Home) -> dict[str, str]:
    """Digests of what a short night makes."""
    return {table: home.lake().digest(table) for table in ("priced_amount", "reconciled", "gap_cause", "attempt")}


# --- what is due ------------------------------------------------------------------------------------------------


def test_a_night_works_through_its_steps_and_the_next_one_rests(undisturbed: Home, tmp_path: Path) -> None:
    home = copied(undisturbed.root, tmp_path / "again")
    before = outcome(home)
    idle = night(home, [home.spool], INTAKE, today=TODAY)
    assert (idle.days, idle.months, idle.reports, idle.priced) == ((), (), {}, 0)
    assert [step for step, work in idle.work.items() if work != Work()] == []
    assert outcome(home) == before


def test_what_was_taken_in_by_another_run_is_done_by_the_next_night(home: Home, undisturbed: Home) -> None:
    """A night that was killed after taking in, and `weighbridge ingest`, leave the same behind."""
    take_in(home, [home.spool], INTAKE)
    done = night(home, [], INTAKE, today=TODAY)
    assert done.ingested.files == ()
    assert (done.days, done.months, sorted(done.reports)) == (texts(DAYS), MONTHS, list(MONTHS))
    assert outcome(home) == outcome(undisturbed)


def test_notes_that_are_lost_or_damaged_cost_time_and_nothing_else(undisturbed: Home, tmp_path: Path) -> None:
    home = copied(undisturbed.root, tmp_path / "again")
    before = outcome(home)
    versions = {table: home.lake().version(table) for table in before.digests}
    (home.state / FILE).write_bytes(b"")
    assert night(home, [], INTAKE, today=TODAY).months == MONTHS
    assert outcome(home) == before
    assert {table: home.lake().version(table) for table in before.digests} == versions, "nothing was written again"


def test_a_page_that_is_gone_is_made_again(undisturbed: Home, tmp_path: Path) -> None:
    home = copied(undisturbed.root, tmp_path / "again")
    before = outcome(home)
    (home.reports / "weighbridge-2026-01.html").unlink()
    done = night(home, [], INTAKE, today=TODAY)
    assert (done.months, list(done.reports)) == ((), ["2026-01"])
    assert outcome(home) == before


def test_a_price_prices_the_days_it_holds_on_anew_and_no_others(undisturbed: Home, tmp_path: Path) -> None:
    home = copied(undisturbed.root, tmp_path / "again")
    (home.root / "prices" / "later.toml").write_text(
        'provider = "openai"\ncurrency = "USD"\nsource = "contract"\nchecked_on = 2026-01-02\n\n[[rows]]\n'
        'match = "equals"\nmodels = ["gpt-4o-2024-11-20"]\nvalid_from = 2026-01-08\n'
        'prices = { input = "9", output = "9" }\n'
    )
    done = night(home, [], INTAKE, today=TODAY)
    assert done.days == texts(DAYS[3:])


def test_late_data_of_a_day_that_was_done_is_done_and_what_was_released_stays(home: Home, undisturbed: Home) -> None:
    """The second half of the files comes a night later. What is told of a day as it stood then is not told anew."""
    segments = sorted(home.spool.glob("*.segment"))
    first = night(home, segments[::2], INTAKE, today=TODAY)
    lake = home.lake()
    released = lake.scan("shared_histogram").collect()
    assert first.months == MONTHS
    night(home, segments[1::2], INTAKE, today=TODAY)
    late, whole = outcome(home), outcome(undisturbed)
    # Limits of a day follow from the days before it as they were when it was judged.
    assert {table for table, digest in whole.digests.items() if late.digests[table] != digest} <= {
        "shared_histogram",
        "baseline",
    }
    still = lake.scan("shared_histogram").filter(pl.col("day").is_in(released["day"].unique().implode())).collect()
    assert released.height
    assert still.sort(pl.all()).equals(released.sort(pl.all()))
    assert {name for name in late.files if late.files[name] != whole.files[name]} == {QUALITY}


def test_what_was_booked_after_the_end_of_a_month_reaches_its_attempt(tmp_path: Path, short: None) -> None:
    """The report of an attempt of January, booked in February and taken in a night later, makes January due."""
    home = new_home(tmp_path / "home", 3)
    simulate(home.spool, attempts=120, seed=3, days=2, start=date(2026, 1, 30), key=home.key)
    night(home, sorted(home.spool.glob("sim-agent-*")), INTAKE, today=TODAY)
    assert reported_in_january(home) == 0
    told = pl.concat(pl.read_parquet(path) for path in home.spool.glob("sim-provider-*/usage_report.parquet"))
    booked = told.with_columns(day=pl.lit(date(2026, 2, 1))).to_arrow(compat_level=pl.CompatLevel.oldest())
    late = write_segment(
        home.spool, "late", {"usage_report": booked}, writer="sim-provider", sequence=(9, 9), key_id=home.key_id
    )
    assert night(home, [late], INTAKE, today=TODAY).months == ("2026-01", "2026-02")
    assert reported_in_january(home) > 100


def reported_in_january(home: Home) -> int:
    """Attempts and directions of January 2026 with a reported figure."""
    rows = home.lake().scan("reconciled", last=date(2026, 1, 31), columns=["reported"])
    return rows.drop_nulls().collect().height


def test_a_clock_that_jumps_back_undoes_nothing(undisturbed: Home, tmp_path: Path, short: None) -> None:
    """A night a month before the last one, with nothing new, and then one on the right day."""
    home = copied(undisturbed.root, tmp_path / "again")
    before = outcome(home)
    for today in (TODAY - timedelta(days=30), TODAY):
        done = night(home, [home.spool], INTAKE, today=today)
        assert (done.days, done.months, done.refused) == ((), (), None)
    assert outcome(home) == before


# --- nights with little or nothing ------------------------------------------------------------------------------


def test_an_empty_spool_is_a_night_without_traffic(tmp_path: Path) -> None:
    home = new_home(tmp_path / "home", 1)
    for paths in ([home.spool], []):
        done = night(home, paths, INTAKE, today=TODAY)
        assert (done.ingested.files, done.days, done.months, done.reports) == ((), (), (), {})
    assert set(home.lake().digests()) == {"change"}, "what it is configured with"


def test_a_day_without_attempts_between_two_others_changes_nothing_about_them(
    home: Home, undisturbed: Home, short: None
) -> None:
    segments = sorted(home.spool.glob("*.segment"))
    held = [path for path in segments if not path.name.endswith("-001.segment")]
    done = night(home, held, INTAKE, today=TODAY)
    missing = set(texts(DAYS)) - set(done.days)
    assert len(missing) == 1
    (gone,) = (date.fromisoformat(day) for day in missing)
    about = [pl.col("day") != day for day in (gone, gone + timedelta(days=1))]
    for table in ("reconciled", "priced_amount"):
        now, whole = (
            lake.scan(table).filter(*about).sort("day", "attempt_lo", "attempt_hi").collect().drop("day")
            for lake in (home.lake(), undisturbed.lake())
        )
        assert now.height == whole.height


@pytest.mark.parametrize(
    ("zone", "first"),
    [
        pytest.param("Europe/Berlin", date(2026, 3, 29), marks=pytest.mark.system),  # forward on the first day
        pytest.param("America/New_York", date(2026, 10, 30), marks=pytest.mark.system),  # and back on 1 November
        ("Pacific/Auckland", date(2026, 9, 27)),  # forward, and the last UTC day is partly 1 October
    ],
)
def test_every_attempt_stands_in_the_report_of_one_month_of_its_zone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, zone: str, first: date
) -> None:
    monkeypatch.setattr(module, "NIGHT", (PRICE, RECONCILE, REPORT))
    home = new_home(tmp_path / "home", 5)
    home = replace(home, settings=replace(home.settings, timezone=zone))
    simulate(home.spool, attempts=120, seed=5, days=4, start=first, key=home.key)
    segments = sorted(home.spool.glob("*.segment"))
    early = [path for path in segments if "-000." in path.name or "-001." in path.name]
    night(home, early, Intake(day=first), today=first + timedelta(days=7))
    night(home, segments, Intake(day=first), today=first + timedelta(days=7))
    rows = [row for page in home.reports.glob("*-csv") for row in days_of_report(page)]
    days = [day for day, _ in rows]
    assert len(days) == len(set(days))
    arrived = home.lake().scan("attempt").select("attempt_lo", "day", "arrived_at").unique("attempt_lo").collect()
    local = pl.col("arrived_at").dt.convert_time_zone(zone).dt.date()
    expected = arrived.select(day=pl.coalesce(local, "day")).group_by("day").len()
    unseen = (
        home.lake()
        .scan("usage_report")
        .join(home.lake().scan("attempt"), on=["attempt_lo", "attempt_hi"], how="anti")
        .select("attempt_lo")
        .unique()
        .collect()
        .height
    )
    counted = {day: count for day, count in rows if count}
    assert sum(counted.values()) == arrived.height + unseen
    assert all(counted[day.isoformat()] >= count for day, count in expected.iter_rows())


def days_of_report(folder: Path) -> list[tuple[str, int]]:
    """Day and attempts of every line of the daily table of a report."""
    with (folder / "daily.csv").open(encoding="utf-8") as file:
        return [(row["day"], int(row["attempts"])) for row in csv.DictReader(file)]


# --- two at once, and no room -----------------------------------------------------------------------------------


def test_a_second_run_says_who_is_at_work_or_waits_for_it(home: Home, undisturbed: Home, short: None) -> None:
    with turn(home):
        with pytest.raises(LakeBusyError, match=r"another run, process \d+; nothing was done"):
            night(home, [home.spool], INTAKE, today=TODAY)
        assert home.lake().digests() == {}
    held = turn(home)
    held.__enter__()
    release = threading.Timer(0.5, lambda: held.__exit__(None, None, None))
    release.start()
    night(home, [home.spool], INTAKE, today=TODAY, wait_s=60)
    release.join()
    assert weighed(home) == weighed(undisturbed)


def test_of_two_nights_at_once_one_does_the_work_and_the_other_finds_it_done(
    home: Home, undisturbed: Home, short: None
) -> None:
    with ThreadPoolExecutor(2) as both:
        done = list(both.map(lambda _: night(home, [home.spool], INTAKE, today=TODAY, wait_s=120), range(2)))
    assert sorted(each.days for each in done) == [(), texts(DAYS)]
    assert sorted(all(file.skipped for file in each.ingested.files) for each in done) == [False, True]
    assert weighed(home) == weighed(undisturbed)


def test_a_night_waits_for_another_writer_of_the_lake(home: Home, undisturbed: Home, short: None) -> None:
    with home.lake().lock(), pytest.raises(LakeBusyError):
        night(home, [home.spool], INTAKE, today=TODAY)
    held = Lake.open(home.lake().root).lock()
    entered, free = threading.Event(), threading.Event()

    def write() -> None:
        with held:
            entered.set()
            free.wait(30)

    writer = threading.Thread(target=write)
    writer.start()
    entered.wait(30)
    threading.Timer(0.5, free.set).start()
    night(home, [home.spool], INTAKE, today=TODAY, wait_s=60)
    writer.join()
    assert weighed(home) == weighed(undisturbed)


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """No file may grow beyond this many bytes, as on a disk that is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


@pytest.mark.parametrize("size", [2_000, pytest.param(60_000, marks=pytest.mark.system)])
def test_a_full_disk_stops_a_night_and_the_next_one_goes_on(
    home: Home, undisturbed: Home, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the first file of the lake to the last page."""
    if size < 60_000:  # it does not come as far as a page
        monkeypatch.setattr(module, "NIGHT", WEIGHING)
    with files_of_at_most(size), pytest.raises(Exception) as stopped:
        night(home, [home.spool], INTAKE, today=TODAY)
    assert isinstance(stopped.value, Transient), type(stopped.value)
    assert "disk is full" in str(stopped.value)
    assert "run it again" in str(stopped.value)
    night(home, [home.spool], INTAKE, today=TODAY)
    if size < 60_000:
        assert weighed(home) == weighed(undisturbed)
    else:
        assert outcome(home) == outcome(undisturbed)
    assert not list(home.root.rglob("*.tmp"))


# --- steps ------------------------------------------------------------------------------------------------------


def test_a_gate_that_refuses_stops_the_night_and_nothing_is_lost(
    home: Home, undisturbed: Home, short: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusing = replace(PRICE, name="gate", work=lambda _home, units, _today: Work({"days": len(units)}, refused=True))
    with monkeypatch.context() as patched:
        patched.setattr(module, "NIGHT", (PRICE, refusing, RECONCILE, SHARE))
        done = night(home, [home.spool], INTAKE, today=TODAY)
    assert (done.refused, done.months, done.reports, done.packed) == ("gate", (), {}, None)
    assert home.lake().version("reconciled") is None
    assert stamps_of(home).of("gate") == {}, "it is asked again"
    night(home, [], INTAKE, today=TODAY)
    assert weighed(home) == weighed(undisturbed)


def test_rows_that_break_the_contract_stop_a_night_before_it_reconciles(
    undisturbed: Home, tmp_path: Path, by_great_expectations: None
) -> None:
    home = copied(undisturbed.root, tmp_path / "again")
    before = outcome(home)
    lake = home.lake()
    right = lake.scan("reading", first=DAYS[0], last=DAYS[0]).collect()
    lake.replace("reading", right.with_columns(pl.col("output_total") + 1), days=[DAYS[0]])
    done = night(home, [], INTAKE, today=TODAY)
    assert (done.refused, done.months, done.reports) == ("validate", (), {})
    assert lake.digest("reconciled") == before.digests["reconciled"]
    lake.replace("reading", right, days=[DAYS[0]])
    again = night(home, [], INTAKE, today=TODAY)
    assert again.refused is None
    after = outcome(home)
    assert after.digests == before.digests
    assert {name for name, content in before.files.items() if after.files[name] != content} <= {QUALITY}


def test_rewriting_that_says_nothing_new_makes_nothing_due(undisturbed: Home, tmp_path: Path, short: None) -> None:
    home = copied(undisturbed.root, tmp_path / "again")
    lake = home.lake()
    day = DAYS[0]
    rows = lake.scan("reading", first=day, last=day).collect()
    lake.replace("reading", rows.clear(), days=[day])
    lake.replace("reading", rows, days=[day])
    assert list(PRICE.due(home, TODAY)) == [day.isoformat()]
    night(home, [], INTAKE, today=TODAY)
    with lake.lock(), no_news(home, WEIGHING, TODAY):
        lake.replace("reading", rows.clear(), days=[day])
        lake.replace("reading", rows, days=[day])
    assert [step.due(home, TODAY) for step in WEIGHING] == [{}] * len(WEIGHING)


def test_what_was_due_before_such_a_rewriting_is_due_after_it(undisturbed: Home, tmp_path: Path) -> None:
    home = copied(undisturbed.root, tmp_path / "again")
    lake = home.lake()
    rows = lake.scan("reading", first=DAYS[0], last=DAYS[0]).collect()
    lake.replace("reading", rows.head(3), days=[DAYS[0]])
    with lake.lock(), no_news(home, WEIGHING, TODAY):
        lake.replace("reading", rows, days=[DAYS[0]])
    assert list(PRICE.due(home, TODAY)) == [DAYS[0].isoformat()]


# --- backfill ---------------------------------------------------------------------------------------------------


def test_a_backfill_does_a_range_of_days_anew_and_changes_nothing_that_was_right(
    undisturbed: Home, tmp_path: Path
) -> None:
    home = copied(undisturbed.root, tmp_path / "again")
    before = outcome(home)
    versions = {table: home.lake().version(table) for table in before.digests}
    done = backfill(home, DAYS[1], DAYS[2], today=TODAY)
    assert (done.days, done.months) == (texts(DAYS[1:3]), ("2026-01",))
    after = outcome(home)
    assert after.digests == before.digests
    assert {name for name, content in before.files.items() if after.files[name] != content} <= {QUALITY}
    assert {table: home.lake().version(table) for table in before.digests} == versions


@pytest.mark.system
def test_a_backfill_mends_what_was_read_wrongly(undisturbed: Home, tmp_path: Path, short: None) -> None:
    home = copied(undisturbed.root, tmp_path / "again")
    before = weighed(home)
    lake = home.lake()
    one_more = [pl.col(name) + 1 for name in ("output_visible", "output_total", "total")]
    wrong = lake.scan("reading", first=DAYS[0], last=DAYS[1]).collect().with_columns(one_more)
    lake.replace("reading", wrong, days=DAYS[:2])
    night(home, [], INTAKE, today=TODAY)
    assert lake.digest("reconciled") != before["reconciled"]
    backfill(home, DAYS[0], DAYS[0], today=TODAY)
    assert lake.digest("reconciled") != before["reconciled"], "the second day is still wrong"
    backfill(home, DAYS[0], DAYS[4], today=TODAY)
    assert weighed(home) == before


@pytest.mark.system
def test_what_was_released_is_released_again_only_where_that_is_asked_for(
    home: Home, undisturbed: Home, short: None
) -> None:
    segments = sorted(home.spool.glob("*.segment"))
    night(home, segments[::2], INTAKE, today=TODAY)
    night(home, segments[1::2], INTAKE, today=TODAY)
    released = home.lake().digest("shared_histogram")
    backfill(home, DAYS[0], DAYS[4], today=TODAY)
    assert home.lake().digest("shared_histogram") == released
    backfill(home, DAYS[0], DAYS[4], today=TODAY, release_again=True)
    assert weighed(home) == weighed(undisturbed)


@pytest.mark.parametrize(
    ("first", "last", "said"),
    [
        (DAYS[1], DAYS[0], "give them in order"),
        (TODAY + timedelta(days=1), TODAY + timedelta(days=2), "still to come: it is 2026-01-12 in UTC"),
    ],
)
def test_a_range_that_ends_before_it_begins_or_is_still_to_come_is_refused(
    undisturbed: Home, first: date, last: date, said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        backfill(undisturbed, first, last, today=TODAY)


def test_a_backfill_of_days_without_traffic_does_nothing(undisturbed: Home, tmp_path: Path, short: None) -> None:
    home = copied(undisturbed.root, tmp_path / "again")
    before = outcome(home)
    done = backfill(home, date(2025, 3, 29), date(2025, 4, 2), today=TODAY)
    assert (done.days, done.months, done.reports) == ((), (), {})
    assert outcome(home) == before
