"""Whatever is put in: causes and residual add up to the gap, nothing counts twice, and order does not matter."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from tests.pipeline.reconcile.conftest import DAY, Core, World, crowd, key
from tests.sampling import examples

from weighbridge.pipeline.reconcile.frames import frame_of

KEYS = ["attempt_lo", "attempt_hi", "direction"]
CORE = Core(frame_of)
COUNTS = st.integers(min_value=0, max_value=30)
MAYBE = st.none() | COUNTS
FLAG = st.sampled_from([True, False, None])
# Small figures, so that explanations coincide by chance again and again.
ATTEMPT = st.fixed_dictionaries(
    {
        **dict.fromkeys(("input_computed", "output_computed", "cached_local", "cached_external"), MAYBE),
        **dict.fromkeys(("reasoning_computed", "withheld_end_token", "input_recounted", "output_recounted"), MAYBE),
        **dict.fromkeys(("recount_special", "recount_template", "messages", "max_tokens", "input_history"), MAYBE),
        **dict.fromkeys(("kv_appended", "kv_evicted"), MAYBE),
        "tokenizer": st.sampled_from(["t-1", "t-2", None]),
        "provider": st.sampled_from(["openai", "xai", None]),
        "status": st.sampled_from(["succeeded", "failed", "aborted"]),
        "request_lo": st.sampled_from([None, None, 1, 2]),
        "request_hi": st.just(0),
        "attempt_number": st.sampled_from([None, 1, 2]),
        **dict.fromkeys(("recount_has_special", "recount_has_template", "usage_expected"), FLAG),
        "finish_reason": st.sampled_from(["stop", "length", None]),
        "source": st.sampled_from(["a", "b"]),
    }
)
CHILD = st.fixed_dictionaries(
    {
        **dict.fromkeys(("input_computed", "output_computed"), MAYBE),
        "kind": st.sampled_from(["choice", "iteration"]),
        "finish_reason": st.sampled_from(["stop", "length", None]),
    }
)
READING = st.fixed_dictionaries(
    {
        **dict.fromkeys(("input_total", "output_total", "cache_read", "cache_write_1h", "reasoning"), MAYBE),
        "verdict": st.sampled_from(["PROVED", "ASSUMED", "CONTRADICTORY", "UNKNOWN"]),
        "source": st.sampled_from(["a", "b"]),
        "child": st.integers(0, 1),
        "report": st.integers(0, 1),
    }
)


def check(outcomes: pl.DataFrame, parts: pl.DataFrame) -> None:
    """The identities of every row."""
    compared = parts.filter("compared").group_by(KEYS).agg(pl.col("tokens").sum().alias("causes"))
    rows = outcomes.join(compared, on=KEYS, how="left").with_columns(pl.col("causes").fill_null(0))
    known = rows.filter(pl.col("gap").is_not_null())
    assert known.filter(pl.col("causes") + pl.col("residual") != pl.col("gap")).is_empty()
    assert known.filter(pl.col("causes") != pl.col("explained")).is_empty()
    sides = pl.col("reported").fill_null(0) - pl.col("observed").fill_null(0)
    assert known.filter(sides != pl.col("gap")).is_empty()
    unknown = rows.filter(pl.col("gap").is_null())
    assert unknown["status"].is_in(["NOT_COMPARED"]).all()
    assert unknown.filter(pl.any_horizontal(pl.col("explained", "residual", "confidence").is_not_null())).is_empty()
    assert unknown["causes"].sum() == 0
    assert known.filter(
        (pl.col("status") == "UNEXPLAINED") & (pl.col("residual") == 0) & (pl.col("gap") != 0)
    ).is_empty()
    assert known.filter(pl.col("status").is_in(["MATCHED", "EXPLAINED"]) & (pl.col("residual") != 0)).is_empty()
    assert known.filter((pl.col("status") == "MATCHED") & (pl.col("gap") != 0)).is_empty()
    assert parts.select(*KEYS, "cause").is_duplicated().sum() == 0
    assert outcomes.select(KEYS).is_duplicated().sum() == 0


@settings(max_examples=examples(10, 25), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    attempts=st.lists(
        st.tuples(st.integers(1, 6), ATTEMPT), max_size=12, unique_by=lambda item: (item[0], item[1]["source"])
    ),
    readings=st.lists(
        st.tuples(st.integers(1, 7), READING),
        max_size=14,
        unique_by=lambda item: (item[0], item[1]["source"], item[1]["child"], item[1]["report"]),
    ),
    children=st.lists(st.tuples(st.integers(1, 6), st.integers(1, 2), CHILD), max_size=6, unique_by=lambda c: c[:2]),
    lost=st.integers(0, 3),
)
def test_causes_and_residual_always_add_up_to_the_gap(
    attempts: list[tuple[int, dict[str, object]]],
    readings: list[tuple[int, dict[str, object]]],
    children: list[tuple[int, int, dict[str, object]]],
    lost: int,
) -> None:
    """For any attempts, tries, calls inside them and reports, however strange."""
    world = World(Path())
    for number, columns in attempts:
        world.attempt(number, **columns)
    for number, columns in readings:
        world.reading(number, **columns)
    for number, child, columns in children:
        hi, lo = key(number)
        place = {"attempt_hi": hi, "attempt_lo": lo, "day": DAY, "source": "a", "child": child, "revision": 0}
        world.add("child", {**place, **columns})
    if lost:
        world.lost(lost)
    outcomes, parts = CORE.weighed(world)
    check(outcomes, parts)
    touched = {number for number, _ in attempts} | {number for number, _ in readings}
    assert outcomes.height == 2 * (len(touched) - CORE.links(world).twins.height)


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.system) for n in (1, 2))])
def test_a_crowd_adds_up_in_any_order_of_rows(seed: int, tmp_path: Path) -> None:
    """Three hundred attempts, and the same ones shuffled."""
    world = World(tmp_path)
    crowd(world, 300, seed)
    outcomes, parts = CORE.weighed(world)
    check(outcomes, parts)
    shuffled = World(tmp_path)
    for table in world.tables:
        rows = world.frame(table).sample(fraction=1.0, shuffle=True, seed=seed + 1).to_dicts()
        shuffled.add(table, *rows)
    again = CORE.weighed(shuffled)
    assert_frame_equal(outcomes, again[0])
    assert_frame_equal(parts, again[1])
