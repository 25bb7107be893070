"""The section of engines: sums of windows, and causes, largest first."""

from __future__ import annotations

from collections.abc import Callable

from tests.pipeline.report.conftest import GPT, World, rich

from weighbridge.pipeline.report.query.engines import engine_causes, engine_counters
from weighbridge.pipeline.report.sheet import BLANK
from weighbridge.pipeline.report.view import View


def test_counters_stand_beside_their_attempts(march: Callable[[World], View]) -> None:
    (row,) = engine_counters(march(rich())).rows
    assert row == ("vllm", GPT, BLANK, "engine-metrics", "generation_tokens", BLANK, 1, 130, 100, 30, 25, 5)


def test_causes_have_their_headline_and_how_many_windows_are_exact(march: Callable[[World], View]) -> None:
    (row,) = engine_causes(march(rich())).rows
    assert row == (
        "aborted", "Computed for requests that never finished", "generation_tokens", "engine-metrics", 25, 1, 1
    )  # fmt: skip


def test_a_month_without_scrapes_says_so(march: Callable[[World], View]) -> None:
    assert engine_counters(march(World())).rows == ()
    assert engine_counters(march(World())).empty
