"""Differences between scrapes: what was counted since the one before, and where a server began anew."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import polars as pl
import pytest

from weighbridge.pipeline.engine.counters import between_scrapes
from weighbridge.pipeline.lake import polars_schema


def at(minute: int) -> datetime:
    return datetime(2026, 1, 15, 10, minute, tzinfo=UTC)


def scrape(minute: int | None, value: int, **more: Any) -> dict[str, Any]:
    row = {
        "cell_hi": hash((minute, more.get("series"))) & 0xFFFF,
        "cell_lo": -1 if minute is None else minute,
        "day": at(0).date(),
        "source": "engine-metrics",
        "engine": "vllm",
        "series": "0" * 32,
        "counter": "generation_tokens",
        "unit": "tokens",
        "metric": "vllm:generation_tokens_total",
        "scraped_at": None if minute is None else at(minute),
        "value": value,
        "undated": minute is None,
        "revision": 0,
    }
    return row | more


def told(*rows: dict[str, Any]) -> list[tuple[int | None, bool | None]]:
    frame = pl.DataFrame(list(rows), schema=polars_schema("engine_counter"))
    found = between_scrapes(frame.lazy()).collect().sort("series", "scraped_at")
    return list(found.select("counted", "reset").iter_rows())


def test_a_counter_that_only_grows() -> None:
    assert told(scrape(0, 100), scrape(5, 160), scrape(10, 160)) == [(None, None), (60, False), (0, False)]


def test_the_order_of_the_rows_does_not_matter() -> None:
    assert told(scrape(10, 300), scrape(0, 100), scrape(5, 160)) == [(None, None), (60, False), (140, False)]


def test_a_value_that_falls_is_a_new_beginning() -> None:
    assert told(scrape(0, 100), scrape(5, 20), scrape(10, 50)) == [(None, None), (20, True), (30, False)]


@pytest.mark.parametrize(("began", "expected"), [(3, (120, True)), (0, (20, False)), (None, (20, False))])
def test_a_counter_that_began_after_the_scrape_before_counts_from_nought(
    began: int | None, expected: tuple[int, bool]
) -> None:
    """A busy server may have counted more since its restart than the old one ever had."""
    later = scrape(5, 120, started_at=None if began is None else at(began))
    assert told(scrape(0, 100), later)[1] == expected


def test_series_do_not_mix() -> None:
    other = "1" * 32
    rows = (scrape(0, 100), scrape(0, 7, series=other), scrape(5, 160), scrape(5, 9, series=other))
    assert told(*rows) == [(None, None), (60, False), (None, None), (2, False)]


def test_a_scrape_without_a_time_comes_after_nothing() -> None:
    assert told(scrape(0, 100), scrape(None, 130), scrape(5, 160)) == [(None, None), (60, False)]


def test_of_revisions_the_last_one_counts() -> None:
    rows = (scrape(0, 100), scrape(5, 160), scrape(5, 170, revision=1))
    assert told(*rows) == [(None, None), (70, False)]


def test_the_first_scrape_counts_since_its_start_where_nothing_came_before() -> None:
    frame = pl.DataFrame([scrape(5, 160, started_at=at(1))], schema=polars_schema("engine_counter"))
    (row,) = between_scrapes(frame.lazy(), from_start=True).collect().to_dicts()
    assert (row["since"], row["counted"], row["reset"]) == (at(1), 160, False)
    (unknown,) = between_scrapes(frame.lazy()).collect().to_dicts()
    assert (unknown["since"], unknown["counted"]) == (None, None)
