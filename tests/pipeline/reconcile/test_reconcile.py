"""A lake reconciled: what is written, by month, over midnight, in batches, twice."""

from __future__ import annotations

from datetime import date

import polars as pl
import pytest
from tests.pipeline.reconcile.conftest import DAY, TENANT, Reconciled, World, crowd, weighed

from weighbridge.pipeline.lake import Lake
from weighbridge.pipeline.reconcile import month as month_module
from weighbridge.pipeline.reconcile.reconcile import prices_used, reconcile
from weighbridge.schemas.errors import ConfigError

APRIL = date(2026, 4, 1)
WRITTEN = ("reconciled", "gap_cause", "finding")


def digests(lake: Lake) -> dict[str, str]:
    """Of the tables that reconciliation writes."""
    return {table: lake.digest(table) for table in WRITTEN}


def test_a_closed_world_comes_out_to_the_last_token(world: World) -> None:
    """A match, a cause, a residual, a missing report and one that has only one side."""
    world.attempt(1, input_computed=100, output_computed=10)
    world.reading(1, input_total=100, output_total=10)
    world.attempt(2, input_computed=100, output_computed=10)
    world.reading(2, input_total=60, output_total=10, cache_read=40)
    world.attempt(3, input_computed=100, output_computed=10)
    world.reading(3, input_total=103, output_total=10)
    world.attempt(4, input_computed=100, output_computed=10)
    world.attempt(5)
    world.reading(5, input_total=100, output_total=10)
    out = weighed(world)
    assert [out.outcome(number) for number in range(1, 6)] == [
        (100, 100, 0, 0, "MATCHED"),
        (100, 60, -40, 0, "EXPLAINED"),
        (100, 103, 3, 3, "UNEXPLAINED"),
        (100, None, -100, 0, "EXPLAINED"),
        (None, 100, None, None, "NOT_COMPARED"),
    ]
    assert out.causes(2) == {"cache_convention": -40}
    assert out.causes(4, "output") == {"usage_missing": -10}
    assert out.result.statuses == {"EXPLAINED": 3, "MATCHED": 4, "NOT_COMPARED": 2, "UNEXPLAINED": 1}
    assert (out.result.attempts, out.result.causes, out.result.months) == (5, 3, ("2026-03",))
    row = out.row(2)
    assert (row["observer"], row["reporter"], row["grade"], row["reports"]) == ("agent", "agent", "G1", 1)
    assert (row["provider"], row["api"], row["model"]) == ("openai", "openai_chat", "m-1")
    assert (row["tenant"], row["task"], row["route"]) == (TENANT, "chat", "main")


def test_a_second_run_changes_nothing(world: World) -> None:
    """The same digests, and no commit at all."""
    crowd(world, 60, 3)
    lake = world.lake()
    first = reconcile(lake)
    before, versions = digests(lake), {table: lake.version(table) for table in WRITTEN}
    second = reconcile(lake)
    assert second == first
    assert digests(lake) == before
    assert {table: lake.version(table) for table in WRITTEN} == versions


def test_the_order_of_rows_in_the_lake_does_not_matter(world: World) -> None:
    """Nor does the day's order in which they were appended."""
    crowd(world, 60, 4)
    there = weighed(world).lake
    back = World(world.root)
    for table in world.tables:
        back.add(table, *reversed(world.tables[table]))
    assert digests(weighed(back).lake) == digests(there)


def test_small_batches_and_one_large_batch_give_the_same_tables(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Learnt templates, known losses and findings are about the month, not about the days, or keys, taken together."""
    crowd(world, 90, 5)
    for table in ("attempt", "reading", "child"):
        for row in world.tables[table]:
            row["day"] = date(2026, 3, 1 + row["attempt_lo"] % 3)
    whole = digests(weighed(world).lake)
    monkeypatch.setattr(month_module, "BATCH_ROWS", 25)
    monkeypatch.setattr(month_module, "SLICE_ROWS", 25)
    lake = world.lake()
    month = month_module.Month(lake, "2026-03", prices_used(lake))
    assert [len(month.slices(days)) for days in month.batches()] == [3, 3, 3]
    assert digests(weighed(world).lake) == whole


def test_whoever_waits_is_told_which_days_are_done(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for day in range(1, 4):
        world.attempt(day, input_computed=1, day=date(2026, 3, day))
    monkeypatch.setattr(month_module, "BATCH_ROWS", 1)
    told: list[str] = []
    reconcile(world.lake(), progress=told.append)
    more = [f"reconciling 2026-03, {done} of 3 days done" for done in (1, 2)]
    assert told == ["reconciling 2026-03", *more]


def two_months() -> tuple[dict[str, object], dict[str, object]]:
    """The last day of March and the first of April."""
    return {"day": date(2026, 3, 31)}, {"day": APRIL}


def test_a_report_booked_after_midnight_meets_its_attempt(world: World) -> None:
    """Even where the month has changed in between: the attempt's day counts, and April has nothing left over."""
    march, april = two_months()
    world.attempt(1, input_computed=100, **march)
    world.reading(1, input_total=100, **april)
    out = weighed(world)
    assert out.outcome(1) == (100, 100, 0, 0, "MATCHED")
    assert out.row(1)["day"] == date(2026, 3, 31)
    assert out.lake.scan("reconciled").collect().height == 2
    assert "unmatched_report" not in out.codes


def test_a_repetition_in_another_month_belongs_to_the_attempt(world: World) -> None:
    """The first report came in time, the second a month later."""
    march, april = two_months()
    world.attempt(1, input_computed=100, **march)
    world.attempt(2, input_computed=100, **april)
    world.reading(1, input_total=100, **march)
    world.reading(1, input_total=100, report=1, **april)
    world.reading(2, input_total=100, **april)
    out = weighed(world, month="2026-03")
    assert out.causes(1) == {"duplicate_report": 100}
    assert weighed(world).causes(1) == {"duplicate_report": 100}


def test_an_attempt_two_sources_date_differently_is_one_attempt_of_the_earlier_day(world: World) -> None:
    """The engine's clock was before midnight, the client's after."""
    march, april = two_months()
    world.attempt(1, source="engine", input_computed=100, **march)
    world.attempt(1, source="client", output_recounted=7, **april)
    world.reading(1, input_total=100, output_total=7, **april)
    out = weighed(world)
    assert out.outcome(1) == (100, 100, 0, 0, "MATCHED")
    assert out.outcome(1, "output") == (7, 7, 0, 0, "MATCHED")
    assert out.lake.days("reconciled") == [date(2026, 3, 31)]


def test_all_months_at_once_equal_each_month_by_itself(world: World) -> None:
    """And one month alone leaves the others as they are."""
    crowd(world, 60, 6)
    for table in ("attempt", "reading", "child"):
        for row in world.tables[table]:
            row["day"] = date(2026, 3 + row["attempt_lo"] % 2, 1 + row["attempt_lo"] % 3)
    whole = weighed(world)
    lake = world.lake()
    for month in whole.result.months:
        reconcile(lake, month=month)
    assert whole.result.months == ("2026-03", "2026-04")
    assert digests(lake) == digests(whole.lake)
    reconcile(lake, month="2026-03")
    assert digests(lake) == digests(whole.lake)


def test_days_whose_attempts_were_erased_are_emptied(world: World) -> None:
    """Rows about attempts that are no longer there do not outlive them."""
    world.attempt(1, input_computed=100)
    world.attempt(2, input_computed=100, day=date(2026, 3, 9))
    lake = world.lake()
    reconcile(lake)
    lake.replace("attempt", world.frame("attempt").head(0), days=[date(2026, 3, 9)])
    reconcile(lake, month="2026-03")
    assert lake.days("reconciled") == [DAY]
    assert lake.days("gap_cause") == [DAY]


def test_findings_of_a_month_that_is_gone_go_too(world: World) -> None:
    """But only when all months are looked at."""
    march, april = two_months()
    world.attempt(1, input_computed=100, **march)
    world.attempt(2, input_computed=100, **april)
    lake = world.lake()
    reconcile(lake)
    lake.replace("attempt", world.frame("attempt").head(0), days=[APRIL])
    reconcile(lake, month="2026-03")
    assert set(lake.scan("finding").collect()["period"]) == {"2026-03", "2026-04"}
    reconcile(lake)
    found = lake.scan("finding").collect()
    assert found.filter(pl.col("period") == "2026-04")["code"].to_list() == ["empty_month"]


def test_an_empty_month_is_a_finding_and_no_error(world: World) -> None:
    """Asked for, and nothing is known about it."""
    world.attempt(1, input_computed=100)
    lake = world.lake()
    result = reconcile(lake, month="2026-07")
    (found,) = result.findings
    assert (found.code, found.severity, found.rows, found.period) == ("empty_month", "notice", 0, "2026-07")
    assert (result.attempts, result.statuses) == (0, {})


def test_an_empty_lake_has_no_month(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Nothing to reconcile, nothing found, nothing written."""
    lake = Lake.create(tmp_path_factory.mktemp("empty"))
    result = reconcile(lake)
    assert (result.months, result.findings) == ((), ())
    assert lake.version("finding") is None


@pytest.mark.parametrize("month", ["2026-13", "2026-3", "March", "2026-03-01", "", "0000-01"])
def test_what_is_no_month_is_refused_with_an_example(month: str, world: World) -> None:
    """The message says how to write one."""
    with pytest.raises(ConfigError, match="YYYY-MM"):
        reconcile(world.lake(), month=month)


def test_gap_causes_and_outcomes_of_a_crowd_close_in_the_lake(world: World) -> None:
    """What holds of the functions holds of the tables they are written to."""
    crowd(world, 200, 7)
    lake = weighed(world).lake
    outcomes, causes = lake.scan("reconciled").collect(), lake.scan("gap_cause").collect()
    sums = outcomes.select(pl.col("gap", "explained", "residual").sum()).row(0, named=True)
    assert causes["tokens"].sum() == sums["explained"]
    assert sums["explained"] + sums["residual"] == sums["gap"]
    joined = causes.join(
        outcomes.filter(pl.col("gap").is_null()), on=["attempt_lo", "attempt_hi", "direction"], how="semi"
    )
    assert joined.is_empty()


def test_the_result_of_a_crowd_is_ordered_worst_first(world: World) -> None:
    """Severity, then amount, then id; the same list as in the table."""
    crowd(world, 200, 8)
    out: Reconciled = weighed(world)
    rank = {"error": 0, "warning": 1, "notice": 2, "info": 3}
    ranks = [rank[finding.severity] for finding in out.result.findings]
    assert ranks == sorted(ranks)
    assert {finding.finding_id for finding in out.result.findings} == set(
        out.lake.scan("finding").collect()["finding_id"]
    )
