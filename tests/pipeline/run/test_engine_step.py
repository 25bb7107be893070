"""The step of engines: months in which anything was scraped, due again when their attempts change."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import polars as pl

from weighbridge.pipeline.lake import Lake, polars_schema
from weighbridge.pipeline.run.home import Home
from weighbridge.pipeline.run.steps import NIGHT
from weighbridge.pipeline.run.steps.engine import STEP, engine_marks

DAY = date(2026, 3, 2)


def put(lake: Lake, table: str, **row: Any) -> None:
    lake.append(table, pl.DataFrame([{"day": DAY, "revision": 0, **row}], schema=polars_schema(table)))


def scrape(lake: Lake, hour: int, value: int) -> None:
    put(
        lake, "engine_counter", cell_hi=hour, cell_lo=hour, source="engine-metrics", engine="vllm", model="m",
        series="0" * 32, counter="prompt_tokens", unit="tokens", metric="vllm:prompt_tokens_total",
        scraped_at=datetime(2026, 3, 2, hour, tzinfo=UTC), value=value, undated=False,
    )  # fmt: skip


def attempt(lake: Lake, number: int) -> None:
    names = dict.fromkeys(("tenant", "task", "route"), "unassigned")
    put(
        lake, "attempt", attempt_hi=0, attempt_lo=number, source="agent", framework="vllm", model_served="m", **names,
        status="succeeded", arrived_at=datetime(2026, 3, 2, 10, 30, tzinfo=UTC), total_us=1, input_computed=50,
    )  # fmt: skip


def test_only_months_with_scrapes_are_weighed_and_again_when_an_attempt_comes(tmp_path: Path) -> None:
    lake = Lake.create(tmp_path / "lake")
    home = cast("Home", SimpleNamespace(lake=lambda: lake))
    attempt(lake, 1)
    assert engine_marks(home, DAY) == {}
    scrape(lake, 10, 0)
    scrape(lake, 11, 100)
    before = engine_marks(home, DAY)
    assert list(before) == ["2026-03"]
    done = STEP.work(home, ["2026-03"], DAY)
    assert done.counts == {"months": 1, "windows": 1, "findings": 1}
    (row,) = lake.scan("engine_gap").collect().to_dicts()
    assert (row["counted"], row["attempted"], row["residual"], row["status"]) == (100, 50, 50, "UNEXPLAINED")
    assert engine_marks(home, DAY) == before
    attempt(lake, 2)
    assert engine_marks(home, DAY) != before
    STEP.work(home, ["2026-03"], DAY)
    (row,) = lake.scan("engine_gap").collect().to_dicts()
    assert (row["attempted"], row["residual"], row["status"]) == (100, 0, "MATCHED")


def test_engines_are_weighed_before_attempts_are_reconciled() -> None:
    """What counters leave to aborted attempts has to be there."""
    names = [step.name for step in NIGHT]
    assert names.index("engine") < names.index("reconcile")
