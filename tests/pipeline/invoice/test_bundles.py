"""Bundles stand for their calls: whatever a price hangs on, they come to what the calls come to one by one."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.pipeline.invoice.world import CELLS, CLASSES, InMemory, World, at
from tests.sampling import examples

from weighbridge.pipeline.invoice.cells import folded
from weighbridge.pipeline.invoice.ours.bundles import Bundles, Bundling
from weighbridge.pipeline.invoice.ours.clocks import span_numbers
from weighbridge.pipeline.invoice.ours.prices import Pricing
from weighbridge.pipeline.invoice.ours.usage import AMOUNTS, call_days
from weighbridge.pipeline.price.frame import READING_COLUMNS, price_readings

PRICES = """
provider = "openai"
currency = "USD"
source = "made up for the tests"
[[rows]]
models = ["m"]
prices = {input = "2", cache_read = "0.2", cache_write_5m = "2.5", cache_write_1h = "4", output = "9", audio_in = "40"}
above = [{ input_tokens = 300, rule = "cliff", prices = { input = "4", output = "15" } }]
fees = { web_search = "10" }
variants = [
  { when = { batch = true }, times = "0.5" },
  { when = { hours = "09:00-17:00 UTC" }, prices = { input = "1.5", output = "9" } },
]
[[rows]]
models = ["slices"]
prices = { input = "2", output = "10" }
above = [{ input_tokens = 150, rule = "marginal", counts = ["input_uncached", "cache_read"], prices = { input = "3" } }]
[[rows]]
models = ["asked"]
prices = { input = "2", output = "10" }
fees = { request = "5" }
"""
DATED = """
provider = "openai"
currency = "USD"
source = "made up for the tests"
[[rows]]
models = ["m"]
valid_to = 2026-04-12
prices = { input = "2", cache_read = "0.2", cache_write_5m = "2.5", cache_write_1h = "4", output = "9" }
above = [{ input_tokens = 300, rule = "cliff", prices = { input = "4", output = "15" } }]
variants = [
  { when = { region = "us" }, times = "1.1" },
  { when = { service_tier = "priority" }, times = "2" },
  { when = { hours = "Sat-Sun 22:00-06:00 America/Los_Angeles" }, prices = { input = "1.5", output = "9" } },
]
[[rows]]
models = ["m"]
valid_from = 2026-04-12
up_to_input_tokens = 350
prices = { input = "3", cache_read = "0.2", cache_write_5m = "2.5", cache_write_1h = "2.5", output = "9" }
above = [{ input_tokens = 100, rule = "cliff", prices = { input = "5", output = "15" } }]
"""
# One change made to every call and to every bundle.
CHANGES: list[dict[str, Any]] = [{}, {"day": at(10).date()}, {"day": at(13).date()}, {"region": "us"},
                                 {"service_tier": "priority"}, {"cache_write_1h": 0}]  # fmt: skip
SPANS = tuple((at(day, 0), at(day + 1, 0)) for day in range(10, 14))


@cache
def pricing(prices: str = PRICES) -> Pricing:
    return Pricing(World(Path(), prices=prices).book())


def small(most: int) -> st.SearchStrategy[int]:
    return st.integers(0, most)


CALL = st.fixed_dictionaries(
    {
        "when": st.integers(0, 4 * 24 * 60 - 1).map(lambda minute: at(10, 0) + timedelta(minutes=minute)),
        "model": st.sampled_from(["m", "m", "m", "slices", "asked", "unknown"]),
        "input_uncached": st.one_of(small(400), small(400), st.none()),
        "cache_read": small(50),
        "cache_write_5m": st.sampled_from([0, 0, 30]),
        "cache_write_unknown": st.sampled_from([0, 0, 0, 20]),
        "output_visible": st.one_of(small(90), st.none()),
        "reasoning": st.one_of(st.just(0), small(20), st.none()),
        "batch": st.sampled_from([None, None, True]),
        "service_tier": st.sampled_from([None, "default", "auto", "flex"]),
        "status": st.sampled_from(["succeeded", "succeeded", "failed"]),
        "input_uncached_audio": st.sampled_from([0, 0, None, 7, 500]),
        "fees": st.sampled_from([None, None, ["web_search"], ["x_search"]]),
        "attempt": st.sampled_from([{}, {"total_us": 5 * 3600 * 10**6}]),
    }
)


def calls(drawn: list[dict[str, Any]]) -> World:
    world = World(Path(), prices=PRICES)
    for one in drawn:
        each = dict(one)
        kinds = each.pop("fees")
        when: datetime = each.pop("when")
        totals = {
            "input_total": None if each["input_uncached"] is None and each["cache_read"] % 2 else 500,
            "output_total": 120,
        }
        known = all(each[name] is not None for name in ("input_uncached", "output_visible", "reasoning"))
        rest: dict[str, Any] = {} if known else {**totals, "total": None}
        world.call(when, **each, **rest, fee_kinds=kinds, fee_counts=kinds and [2])
    return world


def bundled(world: World) -> tuple[Bundles, pl.DataFrame]:
    frames = list(call_days(InMemory(world.rows()), "openai", (at(1), at(28)), {}, (*READING_COLUMNS, "total")))
    return Bundling(SPANS, "UTC", folded(set(CLASSES)), pricing()).of(frames), pl.concat(frames)


def total(values: list[Decimal | None]) -> Decimal | None:
    known = [value for value in values if value is not None]
    return sum(known, start=Decimal(0)) if len(known) == len(values) else None


@settings(deadline=None, max_examples=examples(5, 300))
@given(drawn=st.lists(CALL, min_size=1, max_size=14), day=st.sampled_from([None, at(11).date()]))
def test_bundles_cost_what_their_calls_cost_in_the_frame(drawn: list[dict[str, Any]], day: Any) -> None:
    """As they are, and with the same change (prices of a day, no batch) made to every call and to every bundle."""
    made, frame = bundled(calls(drawn))
    frame = frame.with_columns(batch=pl.lit(None, pl.Boolean)) if day else frame
    priced = price_readings(frame, pricing().book, frame)
    by_call = frame.select("attempt_hi").with_columns(priced[name] for name in (*AMOUNTS, "amount", "amount_fees"))
    assert sum(bundle.calls for bundle in made) == frame.height
    joined = made.members.select("number", "attempt_hi").join(by_call, on="attempt_hi")
    for bundle in made:
        again = pricing().priced(replace(bundle, batch=None) if day else bundle)
        own = joined.filter(pl.col("number") == bundle.number)
        assert own.height == bundle.calls
        assert again.amount == total(own["amount"].to_list())
        assert again.fees == total(own["amount_fees"].to_list())
        for name, amount in zip(CLASSES, AMOUNTS, strict=True):
            assert again.costs[name] == total(own[amount].to_list()), name
        for name in (*CLASSES, *CELLS):
            counts = frame.join(own, on="attempt_hi", how="semi")[name].to_list()
            held = bundle.counts[name] if name in CLASSES else bundle.cells[name]
            assert held == (None if None in counts else sum(counts)), name


SERVED = st.fixed_dictionaries(
    {
        "when": st.integers(0, 4 * 24 * 4 - 1).map(lambda quarter: at(10, 0) + timedelta(minutes=15 * quarter)),
        "input_uncached": st.sampled_from([0, 40, 90, 101, 250, 301, 400]),
        "cache_read": st.sampled_from([0, 10]),
        "cache_write_5m": st.sampled_from([0, 30]),
        "cache_write_1h": st.sampled_from([0, 30]),
        "output_visible": small(90),
        "reasoning": st.sampled_from([0, 7]),
        "region": st.sampled_from([None, "us", "global", "eu"]),
        "service_tier": st.sampled_from([None, "default", "auto", "priority"]),
        "attempt": st.sampled_from([{}, {"tier_requested": "priority"}, {"arrived_at": None}]),
    }
)


@settings(deadline=None, max_examples=examples(2, 300))
@given(
    drawn=st.lists(SERVED, min_size=2, max_size=14),
    change=st.sampled_from(CHANGES),
    zone=st.sampled_from(["UTC", "America/Los_Angeles"]),
)
def test_calls_that_any_term_day_or_length_tells_apart_are_no_bundle(
    drawn: list[dict[str, Any]], change: dict[str, Any], zone: str
) -> None:
    """Region, tier asked for, hours of the week in a zone, thresholds of another day, lifetimes."""
    world = World(Path(), prices=DATED)
    for one in drawn:
        world.call(**one)
    frame = pl.concat(call_days(InMemory(world.rows()), "openai", (at(1), at(28)), {}, (*READING_COLUMNS, "total")))
    made = Bundling(SPANS, zone, folded(set(CLASSES)), pricing(DATED)).of([frame])
    counts = {name: pl.lit(value, frame.schema[name]) for name, value in change.items()}
    if "cache_write_1h" in change:
        counts["cache_write_5m"] = pl.col("cache_write_5m") + pl.col("cache_write_1h")
    frame = frame.with_columns(**counts)
    priced = price_readings(frame, pricing(DATED).book, frame)
    joined = made.members.select("number", "attempt_hi").join(
        frame.select("attempt_hi").with_columns(priced["amount"]), on="attempt_hi"
    )
    for bundle in made:
        told: dict[str, Any] = change
        if "cache_write_1h" in change:
            whole = (bundle.counts["cache_write_5m"] or 0) + (bundle.counts["cache_write_1h"] or 0)
            told = {"counts": {**bundle.counts, "cache_write_5m": whole, "cache_write_1h": 0}}
        own = joined.filter(pl.col("number") == bundle.number)["amount"].to_list()
        assert pricing(DATED).priced(replace(bundle, **told)).amount == total(own)


def test_a_day_of_like_calls_is_one_bundle() -> None:
    world = World(Path(), prices=PRICES)
    for minute in range(50):
        world.call(at(12, 1, minute), input_uncached=minute, service_tier="default", model="slices")
        world.call(at(13, 1), input_uncached=minute, model="plain")
    made, _ = bundled(world)
    assert sorted(bundle.calls for bundle in made) == [*[1] * 50, 50]


def test_moments_lie_in_the_period_that_begins_before_them_and_in_none_between_two() -> None:
    spans = [(at(10, 0), at(11, 0)), (at(12, 0), at(13, 0))]
    moments = pl.Series([at(9), at(10, 0), at(11, 0), at(12), at(13, 0)], dtype=pl.Datetime("us", "UTC"))
    assert span_numbers(moments, spans).to_list() == [-1, 0, -1, 1, -1]
    assert span_numbers(pl.Series([datetime(2026, 1, 1, tzinfo=UTC)]), []).to_list() == [-1]
