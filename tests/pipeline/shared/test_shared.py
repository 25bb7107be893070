"""What is derived for everybody: complete, coarse, released once, and without anything that names a call."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

import polars as pl
import pytest

from weighbridge.pipeline.lake import Lake
from weighbridge.pipeline.shared.bins import FEWEST, edges
from weighbridge.pipeline.shared.facts import facts
from weighbridge.pipeline.shared.shared import TABLE, derive, due, settled
from weighbridge.pipeline.simulate.simulate import START
from weighbridge.schemas.enumerations import SharedMeasure
from weighbridge.schemas.errors import LakeBusyError

DAYS = [START + timedelta(days=number) for number in range(6)]


def released(lake: Lake) -> pl.DataFrame:
    return lake.scan(TABLE).collect()


def test_every_attempt_of_a_day_is_counted_once_per_measure(lake: Lake) -> None:
    result = derive(lake, days=DAYS)
    assert (result.days, result.kept, result.small) == (tuple(DAYS), (), ())
    rows = released(lake)
    assert rows.height == result.rows
    keys = ["attempt_lo", "attempt_hi"]
    attempts = lake.scan("reconciled", columns=["day", *keys]).unique().group_by("day").len().collect()
    arrivals = rows.filter(pl.col("measure") == SharedMeasure.ARRIVAL).group_by("day").agg(pl.col("attempts").sum())
    assert dict(arrivals.iter_rows()) == dict(attempts.iter_rows())
    cell = ["day", "provider", "model", "task"]
    of_cell = rows.group_by(*cell, "measure", "unit").agg(pl.col("attempts").sum())
    assert of_cell.group_by(cell).agg(pl.col("attempts").n_unique())["attempts"].to_list() == [1] * len(
        of_cell.select(cell).unique()
    )


def test_no_row_stands_for_fewer_than_eleven_attempts_and_bounds_are_those_of_bins(lake: Lake) -> None:
    derive(lake, days=DAYS)
    rows = released(lake)
    assert (rows["attempts"] >= FEWEST).all()
    assert set(rows["measure"]) == {str(measure) for measure in SharedMeasure}
    for measure, unit, per_octave in (("input_reported", "tokens", 2), ("amount", "USD", 2), ("duration", "us", 4)):
        bounds = rows.filter((pl.col("measure") == measure) & (pl.col("unit") == unit)).drop_nulls("low")
        assert bounds.height
        assert set(bounds["low"]) <= set(edges(per_octave))
        assert {high + 1 for high in bounds["high"]} <= set(edges(per_octave))


def test_a_histogram_counts_what_the_attempts_of_its_cell_say(lake: Lake) -> None:
    derive(lake, days=DAYS)
    rows = released(lake).filter(pl.col("measure") == "output_reported")
    largest = rows.drop_nulls(["task", "low"]).sort("attempts", descending=True).row(0, named=True)
    told = facts(lake, [largest["day"]]).rows
    own = told.filter(
        (pl.col("provider") == largest["provider"])
        & (pl.col("model") == largest["model"])
        & (pl.col("task") == largest["task"])
    )
    assert largest["attempts"] == int(own["output_reported"].is_between(largest["low"], largest["high"]).sum())


def test_an_attempt_counts_once_on_its_own_day_with_all_it_cost(lake: Lake) -> None:
    told = facts(lake, DAYS)
    assert told.currencies == ("USD",)
    assert told.rows.select("attempt_lo", "attempt_hi").is_unique().all()
    costs = lake.scan("priced_amount").select(pl.col("amount").sum()).collect().item()
    known = int(told.rows["amount USD"].sum())
    assert 0 <= costs * 1_000_000 - known < told.rows.height, "less than a millionth an attempt is lost"


def test_a_day_is_released_once(lake: Lake) -> None:
    derive(lake, days=DAYS[:3])
    before, version = released(lake), lake.version(TABLE)
    late = lake.scan("reconciled", first=DAYS[0], last=DAYS[0]).head(40).collect()
    lake.append("reconciled", late.with_columns(pl.col("attempt_lo") + 1))
    again = derive(lake, days=DAYS[:3])
    assert (again.days, again.kept, again.rows) == ((), tuple(DAYS[:3]), 0)
    assert lake.version(TABLE) == version
    assert released(lake).equals(before)
    forced = derive(lake, days=DAYS[:3], again=True)
    assert forced.days == tuple(DAYS[:3])
    assert not released(lake).filter(pl.col("day") == DAYS[0]).equals(before.filter(pl.col("day") == DAYS[0]))
    assert released(lake).filter(pl.col("day") == DAYS[1]).equals(before.filter(pl.col("day") == DAYS[1]))


def test_days_wait_until_no_more_data_is_expected(lake: Lake) -> None:
    last = DAYS[-1]
    assert due(lake, last, 2) == DAYS[:3]
    assert due(lake, last, 0) == DAYS[:5]
    derive(lake, days=due(lake, last, 2))
    assert due(lake, last, 2) == []
    assert settled(lake, last, 2) == DAYS[:3]
    assert due(lake, last + timedelta(days=1), 2) == DAYS[3:4]
    assert due(lake, last, 100) == []


def test_days_wait_by_the_calendar_whatever_else_the_lake_has(lake: Lake) -> None:
    """The last days of traffic that has ended are released, and rows of days to come release nothing early."""
    assert due(lake, DAYS[-1] + timedelta(days=2), 2) == DAYS[:5]
    assert due(lake, DAYS[-1] + timedelta(days=60), 2) == DAYS
    row = lake.scan("reconciled").head(1).collect()
    ahead = [DAYS[-1] + timedelta(days=number) for number in (90, 91, 92)]
    lake.append("reconciled", pl.concat([row.with_columns(day=pl.lit(day)) for day in ahead]))
    assert due(lake, DAYS[-1], 2) == DAYS[:3]
    assert due(lake, ahead[0], 2) == DAYS


def test_of_a_day_with_too_few_attempts_nothing_is_released(lake: Lake) -> None:
    few = lake.scan("reconciled", first=DAYS[0], last=DAYS[0]).collect()
    keys = few.select("attempt_lo", "attempt_hi").unique(maintain_order=True).head(FEWEST - 1)
    lake.replace("reconciled", few.join(keys, on=["attempt_lo", "attempt_hi"], how="semi"), days=[DAYS[0]])
    result = derive(lake, days=[DAYS[0], date(1999, 1, 1)])
    assert (result.days, result.small, result.rows) == ((), (DAYS[0],), 0)
    assert lake.version(TABLE) is None


def test_nothing_that_names_a_call_or_a_tenant_is_in_the_files(lake: Lake) -> None:
    derive(lake, days=DAYS)
    held = lake.scan("attempt", columns=["attempt_hi", "attempt_lo", "tenant", "segment"]).collect()
    content = b"".join(path.read_bytes() for path in files(lake))
    assert content
    for tenant in held["tenant"].unique():
        assert str(tenant).encode() not in content
    numbers = {value for column in released(lake).select(pl.col(pl.Int64)).iter_columns() for value in column}
    assert not numbers & {*held["attempt_hi"], *held["attempt_lo"]}
    assert not lake.days("token_run")


def files(lake: Lake) -> Iterator[Path]:
    """Everything that lies in the folder for everybody."""
    return (path for path in (Path(lake.root) / "shared").rglob("*") if path.is_file())


def test_a_lake_that_is_being_written_says_so_and_is_left_as_it_is(lake: Lake) -> None:
    with lake.lock(), pytest.raises(LakeBusyError):
        derive(Lake.open(lake.root), days=DAYS)
    assert lake.version(TABLE) is None
