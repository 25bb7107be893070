"""The step of a night on a lake: what it writes, what it leaves alone, and what it makes of odd days."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.pipeline.baseline.conftest import FIRST, lake_of, line, policy
from tests.pipeline.baseline.memory import DAY, Memory, later
from tests.sampling import examples

from weighbridge.pipeline.baseline import baseline as baseline_module
from weighbridge.pipeline.baseline.baseline import baseline
from weighbridge.pipeline.baseline.found import EXCEEDED, TASK_BAND
from weighbridge.pipeline.baseline.history import History, read_history
from weighbridge.pipeline.baseline.policy import BaselinePolicy, TaskBand
from weighbridge.pipeline.lake import Lake
from weighbridge.pipeline.lake.found import write_findings
from weighbridge.pipeline.reconcile.life.status import acknowledge, waive
from weighbridge.pipeline.simulate.incidents import Incident, IncidentKind
from weighbridge.schemas.enumerations import BaselineMethod, Driver, FindingOrigin, Measure, Severity
from weighbridge.schemas.finding import Finding

NOW = datetime(2026, 9, 1, tzinfo=UTC)
TOKENS = pl.col("measure") == str(Measure.TOKENS)
GROWTH = Incident(kind=IncidentKind.OUTPUT_GROWTH, line=0, first=30, days=3, size=3.0)


def rows_of(lake: Lake, day: date) -> pl.DataFrame:
    """What was written about a day."""
    return lake.scan("baseline", first=day, last=day).collect()


def stored(root: Path, memory: Memory) -> Lake:
    """A lake with these rows."""
    lake = Lake.create(root)
    for table in memory.tables:
        lake.append(table, memory.frame(table))
    return lake


@pytest.fixture
def grown(tmp_path: Path) -> tuple[Lake, list[date]]:
    """Three lines over 34 days; answers of the first are three times as long on days 30 to 32."""
    return lake_of(tmp_path / "lake", [line(number, requests=150.0) for number in range(3)], [GROWTH], days=34)


def test_a_second_run_writes_nothing(grown: tuple[Lake, list[date]]) -> None:
    lake, days = grown
    first = baseline(lake, days=days[29:], policy=policy())
    versions = {table: lake.version(table) for table in ("baseline", "finding")}
    again = baseline(lake, days=days[29:], policy=policy())
    assert {table: lake.version(table) for table in versions} == versions
    assert (first.reported > 0, bool(first.raised), again.raised) == (True, True, ())
    assert replace(first, raised=()) == again


def test_night_by_night_is_the_same_as_all_at_once(grown: tuple[Lake, list[date]], tmp_path: Path) -> None:
    lake, days = grown
    baseline(lake, days=days[29:], policy=policy())
    other, _ = lake_of(tmp_path / "other", [line(number, requests=150.0) for number in range(3)], [GROWTH], days=34)
    for day in days[29:]:
        baseline(other, days=[day], policy=policy())
    assert lake.digest("baseline") == other.digest("baseline")
    assert lake.digest("finding") == other.digest("finding")


def test_days_cut_into_several_runs_are_the_same_as_all_at_once(
    grown: tuple[Lake, list[date]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the first of them report is known to the others, though the lake has it only when all are done."""
    lake, days = grown
    baseline(lake, days=days[29:], policy=policy())
    monkeypatch.setattr(baseline_module, "MOST_DAYS", 2)
    other, _ = lake_of(tmp_path / "other", [line(number, requests=150.0) for number in range(3)], [GROWTH], days=34)
    baseline(other, days=days[29:], policy=policy())
    assert lake.digest("baseline") == other.digest("baseline")
    assert lake.digest("finding") == other.digest("finding")


def test_one_old_row_is_read_apart_from_what_lies_years_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or a night would hold a grid of all the days between them."""
    memory = Memory()
    days = (date(2010, 1, 5), date(2026, 3, 10), date(2026, 3, 11))
    for number, day in enumerate(days):
        memory.call(number, day=day)
    lake = stored(tmp_path / "lake", memory)
    lengths: list[int] = []

    def noted(*given: Any, **more: Any) -> History:
        history = read_history(*given, **more)
        lengths.append(history.length)
        return history

    monkeypatch.setattr(baseline_module, "read_history", noted)
    asked = policy()
    done = baseline(lake, days=lake.days("attempt"), policy=asked)
    assert done.days == days
    assert lengths == [asked.season_days + 1, asked.season_days + 2]
    assert lake.days("baseline") == list(days)


def test_days_in_any_order_and_twice_are_the_same_days(grown: tuple[Lake, list[date]], tmp_path: Path) -> None:
    lake, days = grown
    baseline(lake, days=[days[32], days[30], days[32]], policy=policy())
    other, _ = lake_of(tmp_path / "other", [line(number, requests=150.0) for number in range(3)], [GROWTH], days=34)
    baseline(other, days=[days[30], days[32]], policy=policy())
    assert lake.digest("baseline") == other.digest("baseline")


def test_the_finding_says_what_when_how_much_and_why(grown: tuple[Lake, list[date]]) -> None:
    lake, days = grown
    result = baseline(lake, days=days[29:], policy=policy())
    (found,) = [each for each in result.findings if each.code == EXCEEDED]
    rows = lake.scan("baseline").filter(pl.col("reported")).collect()
    assert found.subject == {
        "tenant": "t_" + "0" * 16,
        "task": "chat",
        "model": "model-0",
        "driver": "output_per_request",
    }
    assert (found.severity, found.cause, found.origin) == (
        Severity.WARNING,
        str(Driver.OUTPUT_PER_REQUEST),
        FindingOrigin.BASELINE,
    )
    assert (found.first_day, found.last_day) == (days[30], days[32])
    assert (found.expected, found.observed) == (rows["expected"].sum(), rows["observed"].sum())
    assert found.difference == found.observed - found.expected  # type: ignore[operator]
    # Eight dollars for a million tokens of an answer.
    assert found.amount == Decimal(found.difference) * 8 / 10**6  # type: ignore[arg-type]
    assert found.currency == "USD"
    assert len(found.evidence) == 20


def test_findings_of_other_rooms_and_months_stay(grown: tuple[Lake, list[date]]) -> None:
    lake, days = grown
    theirs = Finding(
        code="quarantined_rows", severity=Severity.INFO, period="2026-02", subject={}, rows=1, cure="Look."
    )
    write_findings(lake, [theirs], origin=FindingOrigin.RECONCILE, periods=["2026-02"])
    baseline(lake, days=days[29:], policy=policy())
    baseline(lake, days=[date(2026, 7, 1)], policy=policy())
    kept = lake.scan("finding").collect()
    assert set(kept["origin"]) == {"reconcile", "baseline"}


def test_a_confirmed_incident_is_no_measure_and_a_waived_one_is(grown: tuple[Lake, list[date]]) -> None:
    """After three days of threefold answers the reference of the fourth has them, unless somebody confirmed them."""
    lake, days = grown
    result = baseline(lake, days=days[30:33], policy=policy())
    (found,) = [each for each in result.findings if each.code == EXCEEDED]

    def limits() -> dict[str, Any]:
        baseline(lake, days=[days[33]], policy=policy())
        mine = TOKENS & (pl.col("task") == "chat") & (pl.col("token_class") == "output_visible")
        return rows_of(lake, days[33]).filter(mine).row(0, named=True)

    open_ = limits()
    waive(lake, found.finding_id, by="ops", reason="wanted", expires=date(2026, 12, 1), now=NOW)
    waived = limits()
    acknowledge(lake, found.finding_id, by="ops", now=NOW)
    confirmed = limits()
    assert open_ == waived
    assert confirmed["rows"] < open_["rows"]
    assert confirmed["days"] == open_["days"] - 3
    assert confirmed["upper"] < open_["upper"]


def test_days_without_rows_lose_what_was_said_about_them(grown: tuple[Lake, list[date]]) -> None:
    lake, days = grown
    baseline(lake, days=[days[31]], policy=policy())
    for table in ("attempt", "reading"):
        lake.replace(table, lake.scan(table).limit(0).collect(), days=[days[31]])
    result = baseline(lake, days=[days[31]], policy=policy())
    assert (result.days, result.cells, result.findings) == ((), 0, ())
    assert rows_of(lake, days[31]).is_empty()


def test_a_day_nobody_called_anything_is_not_judged_and_no_alarm(tmp_path: Path) -> None:
    """The day before and the day after know nothing of it."""
    lake, days = lake_of(tmp_path / "lake", [line(0, requests=100.0)], days=34)
    for table in ("attempt", "reading", "priced_amount"):
        lake.replace(table, lake.scan(table).limit(0).collect(), days=[days[32]])
    result = baseline(lake, days=days[32:], policy=policy())
    assert result.days == (days[33],)
    assert result.reported == 0


def test_an_empty_lake_is_judged_in_no_time(tmp_path: Path) -> None:
    lake = Lake.create(tmp_path / "lake")
    assert baseline(lake, days=[DAY], policy=policy()).cells == 0
    assert lake.version("baseline") is None


def test_a_cell_with_one_row(tmp_path: Path) -> None:
    memory = Memory()
    memory.call(1)
    lake = stored(tmp_path / "lake", memory)
    baseline(lake, days=[DAY], policy=policy())
    rows = rows_of(lake, DAY)
    assert rows.height == 4  # input, output, requests, retries
    assert set(rows["method"]) == {str(BaselineMethod.REFUSED)}
    assert rows.select("lower", "upper", "limit", "p_value").null_count().sum_horizontal().item() == 4 * 4
    assert dict(rows.drop_nulls("token_class").select("token_class", "observed").iter_rows()) == {
        "input_uncached": 100,
        "output_visible": 10,
    }


@pytest.mark.parametrize(
    "tokens",
    [lambda _: 0, lambda _: 17, lambda n: 2**40 - n, lambda n: n % 2],
    ids=["all zeros", "all alike", "huge", "mostly ties"],
)
def test_odd_counts_are_limits_like_others_and_no_alarm(tmp_path: Path, tokens: Callable[[int], int]) -> None:
    """Thirty days of ten rows, the last like the others."""
    memory = Memory()
    for number in range(300):
        memory.call(number, tokens(number), day=later(number // 10))
    lake = stored(tmp_path / "lake", memory)
    result = baseline(lake, days=[later(29)], policy=policy())
    row = rows_of(lake, later(29)).filter(pl.col("token_class") == "input_uncached")
    assert result.reported == 0
    if tokens(1) == 0:
        assert row.is_empty()  # a class of which nobody ever had a token is no cell
    else:
        upper, largest = row["upper"].item(), max(map(tokens, range(290)))
        assert upper == pytest.approx(largest, rel=2e-6)
        assert row["observed"].item() == sum(map(tokens, range(290, 300)))


@given(st.randoms(use_true_random=False))
@settings(max_examples=examples(2, 4), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_order_of_rows_changes_nothing(
    in_order: str, tmp_path_factory: pytest.TempPathFactory, random: Any
) -> None:
    """Rows of attempts and readings shuffled, and cut into files at random: the same bytes."""
    memory = crowd()
    lake = Lake.create(tmp_path_factory.mktemp("lake"))
    for table in ("attempt", "reading"):
        frame = memory.frame(table)
        order = list(range(frame.height))
        random.shuffle(order)
        frame, cut = frame[order], random.randrange(frame.height)
        for part in (frame[:cut], frame[cut:]):
            lake.append(table, part)
    baseline(lake, days=[later(29)], policy=policy())
    assert lake.digest("baseline") == in_order


@pytest.mark.parametrize("tokens", [-7, None], ids=["negative", "absent"])
def test_a_count_that_cannot_be_is_no_row_and_stops_no_night(tmp_path: Path, tokens: int | None) -> None:
    memory = Memory()
    for number in range(300):
        memory.call(number, day=later(number // 10))
    memory.attempt(300, day=later(29))
    memory.reading(300, day=later(29), input_uncached=tokens, input_total=tokens)
    lake = stored(tmp_path / "lake", memory)
    assert baseline(lake, days=[later(29)], policy=policy()).reported == 0
    row = rows_of(lake, later(29)).filter(pl.col("token_class") == "input_uncached").row(0, named=True)
    assert (row["day_rows"], row["observed"]) == (10, 1000)


def test_a_cell_that_stops_has_no_day_and_keeps_its_limits(tmp_path: Path) -> None:
    """Two tenants; one of them sends nothing on the last day, and nothing is said of a day that is not there."""
    memory = Memory()
    for number in range(600):
        tenant, day = f"t_{number % 2:016x}", number // 20
        if tenant.endswith("0") or day < 29:
            memory.call(number, 50 + number % 7, day=later(day), tenant=tenant)
    lake = stored(tmp_path / "lake", memory)
    assert baseline(lake, days=[later(29)], policy=policy()).reported == 0
    mine = (pl.col("tenant") == f"t_{1:016x}") & (pl.col("token_class") == "input_uncached")
    row = rows_of(lake, later(29)).filter(mine).row(0, named=True)
    assert (row["day_rows"], row["observed"], row["p_value"], row["median"]) == (0, 0, None, None)
    assert row["upper"] == 56


def test_a_clock_that_jumped_is_a_day_without_a_past(tmp_path: Path) -> None:
    """One attempt of the year 2100: no limits, no alarm, and the days of today are as they were."""
    memory = Memory()
    for number in range(300):
        memory.call(number, 50 + number % 7, day=later(number // 10))
    before = stored(tmp_path / "before", memory)
    memory.call(300, 10**9, day=date(2100, 1, 1))
    after = stored(tmp_path / "after", memory)
    for lake in (before, after):
        baseline(lake, days=[later(29)], policy=policy())
    assert rows_of(before, later(29)).equals(rows_of(after, later(29)))
    assert baseline(after, days=[date(2100, 1, 1)], policy=policy()).reported == 0
    assert rows_of(after, date(2100, 1, 1))["upper"].null_count() == 4


@cache
def crowd() -> Memory:
    """Four tenants of 150 attempts over thirty days."""
    memory = Memory()
    rng = np.random.default_rng(4)
    for number in range(600):
        tenant = f"t_{number % 4:016x}"
        memory.call(number, int(rng.lognormal(5, 1)), day=later(number // 20), tenant=tenant)
    return memory


@pytest.fixture(scope="module")
def in_order(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What is written of the last day where the rows of the crowd come in order."""
    lake = stored(tmp_path_factory.mktemp("in-order"), crowd())
    baseline(lake, days=[later(29)], policy=policy())
    return str(lake.digest("baseline"))


# --- money ------------------------------------------------------------------------------------------------------


def test_what_costs_less_than_the_floor_is_let_go(grown: tuple[Lake, list[date]]) -> None:
    lake, days = grown
    result = baseline(lake, days=[days[30]], policy=policy(floor=Decimal(1000)))
    assert (result.reported, result.findings) == (0, ())
    assert rows_of(lake, days[30])["p_value"].min() < 1e-6  # type: ignore[operator]


def test_without_a_price_the_excess_is_shown_and_nothing_is_held_back(tmp_path: Path) -> None:
    lake, days = lake_of(
        tmp_path / "lake", [line(number, requests=150.0) for number in range(3)], [GROWTH], days=31, priced=False
    )
    result = baseline(lake, days=[days[30]], policy=policy(floor=Decimal(1000)))
    (found,) = result.findings
    assert (found.severity, found.amount, found.currency) == (Severity.NOTICE, None, None)
    assert found.difference is not None
    assert found.difference > 1000


# --- the task table ---------------------------------------------------------------------------------------------

BAND = TaskBand(input=(50, 80), output=(5, 10), tolerance=BaselinePolicy.default().request_rate * 10)


def test_a_declared_task_has_a_band_from_its_first_request_on(tmp_path: Path) -> None:
    """Input declared as 50 to 80 and a tenth; twenty requests of 100 tokens are beyond that, their output is not."""
    memory = Memory()
    for number in range(20):
        memory.call(number)
    lake = stored(tmp_path / "lake", memory)
    result = baseline(lake, days=[DAY], policy=policy(tasks={"chat": BAND}))
    rows = {row["measure"]: row for row in rows_of(lake, DAY).to_dicts() if row["method"] == "task_table"}
    assert [rows["input"][name] for name in ("lower", "upper", "median", "exceeding", "reported")] == [
        *(45, 88, 100, 20, True)
    ]
    assert [rows["output"][name] for name in ("lower", "upper", "median", "exceeding", "reported")] == [
        *(5, 11, 10, 0, False)
    ]
    (found,) = result.findings
    assert (found.code, found.expected, found.observed, found.difference) == (TASK_BAND, 88, 100, 12)
    assert found.subject["direction"] == "input"


def test_few_requests_say_nothing_about_a_declared_task(tmp_path: Path) -> None:
    memory = Memory()
    for number in range(19):
        memory.call(number)
    lake = stored(tmp_path / "lake", memory)
    assert baseline(lake, days=[DAY], policy=policy(tasks={"chat": BAND})).findings == ()


# --- versions ---------------------------------------------------------------------------------------------------


def test_another_version_or_strategy_is_another_cell(tmp_path: Path) -> None:
    memory = Memory()
    changes: dict[str, Any] = {
        "model_revision": "r2",
        "tokenizer": "o300k",
        "strategy_id": "b" * 32,
        "model_served": "m-2",
    }
    memory.call(0)
    for number, (name, value) in enumerate(changes.items()):
        memory.call(1 + number, 100, **{name: value})
    history = read_history(memory, DAY, DAY, [DAY])
    assert history.series == 1 + len(changes)


def test_retries_count_as_retries_and_not_as_requests(tmp_path: Path) -> None:
    memory = Memory()
    memory.call(1)
    memory.call(2, attempt_number=2)
    memory.call(3, attempt_number=None)
    facts = read_history(memory, DAY, DAY, [DAY]).facts.row(0, named=True)
    assert [facts[name] for name in ("attempts", "requests", "tries", "retries", "n_input_uncached")] == [3, 2, 2, 1, 2]


def test_the_first_day_is_a_monday() -> None:
    assert FIRST.weekday() == DAY.weekday() == 0
