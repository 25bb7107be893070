"""Steps of a vLLM engine: what they come to, told where a stretch of work begins and where it ends."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.pipeline.ingest.engine_samples import BEGAN, idle, step

from weighbridge.pipeline.ingest.ingest import IngestResult
from weighbridge.pipeline.lake import Lake

Row = dict[str, Any]
Take = Callable[..., IngestResult]
First: Row = {"time_to_first_tokens_iter": [0.5], "prompt_token_stats": {"computed": 7, "total": 7}}


@pytest.fixture
def told(jsonl: Callable[..., Path], lake: Lake, take: Take) -> Callable[..., list[tuple[Any, ...]]]:
    """Seconds since the first step's base, generated and looked-up tokens, in order."""

    def read(*records: Row) -> list[tuple[Any, ...]]:
        take([jsonl("steps.jsonl", records)], lake, model="m")
        rows = lake.scan("engine_counter").collect()
        kept = rows.filter(pl.col("counter").is_in(["generation_tokens", "prefix_cache_queries"]))
        wide = kept.pivot(on="counter", index=["scraped_at", "started_at"], values="value").sort("scraped_at")
        base = pl.lit(BEGAN).cast(pl.Int64) * 1_000_000
        times = wide.with_columns(
            (pl.col(name).dt.timestamp("us") - base) / 1_000_000 for name in ("scraped_at", "started_at")
        )
        names = ("scraped_at", "started_at", "generation_tokens", "prefix_cache_queries")
        return [tuple(row) for row in times.select(names).iter_rows()]

    return read


def test_a_stretch_is_told_from_its_first_arrival_to_its_last_token(told: Callable[..., Any]) -> None:
    """The first token came half a second after its request: nothing ran before 0.5; at 3 the engine rests."""
    queries: Row = {"prefix_cache_stats": {"requests": 1, "queries": 7}}
    rows = told(step(1, busy=True, **First, **queries), step(2, busy=True), step(3, n_finished=1))
    assert rows == [(0.5, 0.5, 0, 0), (3.0, 0.5, 3, 7)]


def test_a_prompt_that_left_in_prefill_is_counted_between_two_stretches(told: Callable[..., Any]) -> None:
    """Step 3 has no time: what it tells happened after the end of the one stretch and before the next."""
    left = idle(3, prefix_cache_stats={"requests": 1, "queries": 90})
    rows = told(
        step(1, busy=True, **First), step(2), left, step(4, busy=True, at=BEGAN + 9, **First), step(5, at=BEGAN + 10)
    )
    assert rows == [(0.5, 0.5, 0, 0), (2.0, 0.5, 2, 0), (8.5, 0.5, 2, 90), (10.0, 0.5, 4, 90)]


def test_an_aborted_stretch_ends_with_its_last_token(told: Callable[..., Any]) -> None:
    rows = told(
        step(1, busy=True, **First),
        step(2, busy=True),
        idle(3),
        step(4, busy=True, at=BEGAN + 9),
        step(5, at=BEGAN + 10),
    )
    assert [(at, tokens) for at, _, tokens, _ in rows] == [(0.5, 0), (2.0, 2), (9.0, 2), (10.0, 4)]


def test_where_steps_are_missing_counting_begins_anew(told: Callable[..., Any]) -> None:
    """Steps 3 to 6 are missing: what they counted nobody knows, so the next value starts from nothing."""
    rows = told(step(1, busy=True, **First), step(2), step(7, busy=True, at=BEGAN + 9, **First), step(8, at=BEGAN + 10))
    assert [(round(at, 3), round(began, 3), tokens) for at, began, tokens, _ in rows] == [
        (0.5, 0.5, 0),
        (2.0, 0.5, 2),
        (8.5, 8.5, 0),
        (8.5, 8.5, 0),
        (10.0, 8.5, 2),
    ]


def test_a_stretch_that_lasts_is_told_of_every_minute(told: Callable[..., Any], lake: Lake) -> None:
    steps = [step(number, busy=True, at=BEGAN + number * 30) for number in range(1, 6)]
    rows = told(*steps, step(6, at=BEGAN + 180))
    assert [(at, tokens) for at, _, tokens, _ in rows] == [(30.0, 0), (90.0, 3), (150.0, 5), (180.0, 6)]
    spans = lake.scan("engine_counter").collect()["scraped_at"].unique().sort().diff().drop_nulls()
    assert spans.max() == timedelta(seconds=60)


@pytest.mark.parametrize(
    "bad", [{"num_generation_tokens": 1.5}, {"num_generation_tokens": -1}, {"num_generation_tokens": 2**63},
            {"iteration_timestamp": "noon"}]
)  # fmt: skip
def test_a_step_that_cannot_be_read_goes_to_quarantine_and_is_missing(
    bad: Row, jsonl: Callable[..., Path], lake: Lake, take: Take
) -> None:
    """And whatever comes after it begins anew: a sum without it would be wrong."""
    broken = step(2, busy=True)
    broken["iteration"] |= bad
    (file,) = take([jsonl("steps.jsonl", [step(1, busy=True), broken, step(3, busy=True), step(4)])], lake).files
    assert (file.rows_in, file.rows_quarantined) == (4, 1)
    assert file.rows_in == file.rows_out + file.rows_quarantined + file.rows_duplicate
    rows = lake.scan("engine_counter").filter(pl.col("counter") == "generation_tokens").collect().sort("scraped_at")
    assert rows["value"].to_list()[-1] == 2
    assert rows["started_at"].n_unique() == 2
