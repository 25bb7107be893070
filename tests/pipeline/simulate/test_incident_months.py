"""Months for baselines: the same seed gives the same rows, and an incident changes its own line on its own days."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from decimal import Decimal

import polars as pl
import pytest

from weighbridge.pipeline.lake import polars_schema, shaped
from weighbridge.pipeline.simulate.incidents import (
    BURST_KEY,
    Incident,
    IncidentKind,
    Line,
    made_up_lengths,
    month,
    price_id,
    prices,
)

START = date(2026, 1, 5)
LENGTHS = {"made up": made_up_lengths(1)}
LINES = tuple(
    Line(tenant=f"t_{number:016x}", task="chat", model=f"m-{number}", lengths="made up", requests=200.0)
    for number in range(2)
)
K = IncidentKind


def tables(incidents: Sequence[Incident] = (), days: int = 3) -> dict[str, pl.DataFrame]:
    """The rows of some days by table."""
    drawn = list(month(LENGTHS, LINES, incidents, seed=5, start=START, days=days))
    return {table: pl.concat([day.tables[table] for day in drawn]) for table in drawn[0].tables}


def joined(rows: dict[str, pl.DataFrame]) -> pl.DataFrame:
    """Attempts beside their readings and amounts."""
    key = ["attempt_hi", "attempt_lo"]
    read = rows["reading"].select(*key, "input_uncached", "cache_read", "output_visible")
    return rows["attempt"].join(read, on=key).join(rows["priced_amount"].select(*key, "amount"), on=key)


def totals(incident: Incident | None) -> pl.DataFrame:
    """Per line and day: attempts, requests, tokens and money."""
    rows = joined(tables([] if incident is None else [incident]))
    first = pl.col("attempt_number") == 1
    return (
        rows.group_by("tenant", "day")
        .agg(
            requests=first.sum(),
            again=(~first).sum(),
            uncached=pl.col("input_uncached").sum(),
            cached=pl.col("cache_read").sum(),
            answers=pl.col("output_visible").sum(),
            money=pl.col("amount").sum(),
            model=pl.col("model_served").first(),
        )
        .sort("tenant", "day")
    )


def test_the_same_seed_gives_the_same_rows_and_they_fit_their_tables() -> None:
    first, second = tables(), tables()
    for table, rows in first.items():
        assert rows.equals(second[table])
        assert shaped(table, rows).columns == list(polars_schema(table))
    assert shaped("price", prices(LINES)).height == 2 * 7


@pytest.mark.parametrize(
    ("kind", "size", "column", "low", "high"),
    [
        (K.TEMPLATE, 1.3, "uncached", 1.25, 1.35),
        (K.OUTPUT_GROWTH, 2.0, "answers", 2.0, 2.0),
        (K.KEY_BURST, 2.0, "requests", 2.6, 3.4),
        (K.RETRY_STORM, 0.6, "again", 10, 100),
        (K.CACHE_BREAKER, 1.0, "cached", 0.0, 0.0),
    ],
)
def test_an_incident_changes_its_line_on_its_days_and_nothing_else(
    kind: IncidentKind, size: float, column: str, low: float, high: float
) -> None:
    clean, struck = totals(None), totals(Incident(kind=kind, line=0, first=1, days=1, size=size))
    ratio = struck[column][1] / clean[column][1]
    assert low <= ratio <= high
    untouched = [0, 2, 3, 4, 5]
    assert struck[untouched].equals(clean[untouched])


def test_a_swap_moves_all_requests_to_the_other_model_at_its_price() -> None:
    rich = ("m-rich", (Decimal(20), Decimal(5), Decimal(80)))
    incident = Incident(kind=K.MODEL_SWAP, line=0, first=1, days=2, to=rich)
    clean, struck = totals(None), totals(incident)
    assert struck["model"].to_list() == ["m-0", "m-rich", "m-rich", "m-1", "m-1", "m-1"]
    assert struck["requests"].to_list() == clean["requests"].to_list()
    assert struck["money"][1] == 10 * clean["money"][1]
    assert set(prices(LINES, [incident])["price_id"]) == {price_id(name) for name in ("m-0", "m-1", "m-rich")}


def test_a_burst_comes_by_one_key_and_nothing_else_does() -> None:
    rows = tables([Incident(kind=K.KEY_BURST, line=0, first=0, days=1, size=1.0)])["attempt"]
    ordinary = tables()["attempt"]
    burst = rows.filter(pl.col("subject_bucket") == BURST_KEY)
    assert set(burst["day"]) == {START}
    assert not (ordinary["subject_bucket"] == BURST_KEY).any()


def test_amounts_are_tokens_at_their_price() -> None:
    row = joined(tables()).row(0, named=True)
    expected = row["input_uncached"] * 2 + row["cache_read"] * Decimal("0.5") + row["output_visible"] * 8
    assert row["amount"] == expected / 10**6


def test_weeks_have_weekends_and_days_have_nights() -> None:
    rows = tables(days=14)["attempt"]
    by_day = rows.group_by(pl.col("day").dt.weekday()).len().sort("day")["len"]
    by_hour = rows.group_by(pl.col("arrived_at").dt.hour()).len().sort("arrived_at")["len"]
    assert by_day[6] < by_day[0] / 2
    assert by_hour[3] < by_hour[10] / 4
