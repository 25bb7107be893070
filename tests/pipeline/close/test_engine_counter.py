"""Counters of engines and what is learnt of recounts in a close: of its month, with their files, and verified."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import polars as pl
from tests.pipeline.close.conftest import FILE_A, Office

from weighbridge.pipeline.close.verify import verify


def counter(cell: int, day: date) -> dict[str, Any]:
    return {
        "cell_hi": cell,
        "cell_lo": -cell,
        "day": day,
        "source": "engine-metrics",
        "engine": "vllm",
        "series": "0" * 32,
        "counter": "prompt_tokens",
        "unit": "tokens",
        "metric": "vllm:prompt_tokens_total",
        "scraped_at": datetime(day.year, day.month, day.day, tzinfo=UTC),
        "value": 100,
        "undated": False,
        "segment": FILE_A,
        "segment_row": cell,
        "revision": 0,
    }


def test_a_close_holds_the_scrapes_of_its_month_and_their_files(office: Office) -> None:
    office.both(1, "2026-03-02T10:00:00", segment="c" * 64)
    office.file(FILE_A)
    office.file("c" * 64)
    office.add("engine_counter", counter(1, date(2026, 3, 2)))
    office.add("engine_counter", counter(2, date(2026, 4, 1)))
    office.weigh()
    assert office.close().closed
    held = pl.concat([pl.read_parquet(path) for path in sorted((office.pack() / "rows/engine_counter").iterdir())])
    assert held["cell_hi"].to_list() == [1]
    assert set(pl.read_parquet(office.pack() / "rows/segment/all.parquet")["segment"]) == {FILE_A, "c" * 64}
    assert verify(office.pack()).sound
