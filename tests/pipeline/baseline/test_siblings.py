"""Cells of few rows, and days as wholes: what borrowing promises, and what it gains."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from tests.pipeline.baseline.conftest import NAME, history_of, lognormal, policy, window_of

from weighbridge.pipeline.baseline.judge import judged
from weighbridge.pipeline.baseline.limits import ordered
from weighbridge.pipeline.baseline.siblings import Kin, past_of, pooled_limits, rank_p_values, shrunk, without_week
from weighbridge.schemas.enumerations import BaselineMethod, Measure

DAYS = 85
TOKENS = pl.col("measure") == str(Measure.TOKENS)


def p_values(seed: int, **how: float) -> pl.DataFrame:
    """The token rows of a last day on which nothing changed."""
    rng = np.random.default_rng([seed, 3])
    cells = int(how.pop("cells"))
    history = history_of(*lognormal(rng, cells, **how), length=DAYS, tasks=5)  # type: ignore[arg-type]
    return judged(window_of(history), policy()).filter(TOKENS)


@pytest.mark.parametrize(
    "how",
    [
        {"cells": 300, "a_day": 2.0},
        {"cells": 300, "a_day": 0.5},
        {"cells": 300, "a_day": 2.0, "of_days": 0.2},
        {"cells": 60, "a_day": 60.0, "of_days": 0.4},
    ],
    ids=["few rows", "very few", "few rows, days differ", "many rows, days differ"],
)
def test_days_as_wholes_keep_their_promise(how: dict[str, float]) -> None:
    """Ten nights on which nothing changed: no more small p-values than promised, and hardly ever a report."""
    nights = [p_values(seed, **how) for seed in range(10)]
    found = pl.concat(nights).filter(pl.col("method") == str(BaselineMethod.SIBLINGS))["p_value"].drop_nulls()
    assert len(found) > 250
    for level in (0.05, 0.01):
        sd = np.sqrt(len(found) * level)
        assert (found <= level).sum() <= len(found) * level + 4 * sd
    assert sum(night["reported"].any() for night in nights) <= 2


def test_limits_of_cells_with_few_rows_hold_for_all_of_them_together() -> None:
    """Cells of three rows, which have no limit of their own: 5 % of new rows lie above the shared one."""
    nights = pl.concat([p_values(seed, cells=600, a_day=0.12) for seed in range(6)])
    rows, over = nights["day_rows"].sum(), nights["exceeding"].sum()
    assert np.median(nights["rows"].to_numpy()) < 6
    assert nights["upper"].null_count() == 0
    assert int(over) / int(rows) == pytest.approx(0.05, abs=4 * np.sqrt(0.05 * 0.95 / int(rows)))


def test_borrowing_finds_more_than_the_few_rows_alone_would() -> None:
    """Three rows per cell: the shared 1 % limit has several times the power of a t-limit that promises the same."""
    rng = np.random.default_rng(8)
    cells, within = 3_000, 0.8
    centre = rng.normal(6, 0.4, cells)
    past_rows = centre[:, None] + within * rng.standard_normal((cells, 3))
    cell = np.repeat(np.arange(cells), 3)
    rows = np.zeros((cells, 30), np.int64)
    rows[:, [3, 9, 20]] = 1
    total = np.zeros((cells, 30), np.int64)
    y = np.rint(past_rows * 2**20).astype(np.int64)
    for place, day in enumerate([3, 9, 20]):
        total[:, day] = y[:, place]
    kin = Kin(np.zeros(cells, np.int64), np.zeros(cells, np.int64))
    spread = np.full(cells, within * 2**20)
    past, found = past_of(rows, total / 2**20, spread, kin, reference=28)
    now = past.of(slice(None), -1)
    held = ordered(cell.astype(np.int32), y.ravel().astype(np.int32), cells)
    limit = pooled_limits(cell, y.ravel(), held, now, found, (Fraction(5, 100), Fraction(1, 100))).limit
    same = centre + within * rng.standard_normal(cells)
    moved = same + np.log(4)
    own = past_rows.mean(axis=1) + 6.965 * past_rows.std(axis=1, ddof=1) * np.sqrt(1 + 1 / 3)  # t of 2 degrees, 1 %
    assert (same > limit).mean() == pytest.approx(0.01, abs=0.006)
    assert (moved > limit).mean() > 2 * (moved > own).mean()


def test_a_cell_of_few_rows_is_drawn_to_its_relatives_and_one_of_many_is_not() -> None:
    """The others of the tenant and task have a mean of 6; a cell has one row of 9, another a hundred of them."""
    rows = np.zeros((12, 30), np.int64)
    rows[:10, 5:25] = 5
    rows[10, 7] = 1
    rows[11, 5:25] = 5
    mean = np.r_[np.linspace(5.8, 6.2, 10), 9.0, 9.0]
    total = np.rint(rows * mean[:, None] * 2**20).astype(np.int64)
    kin = Kin(np.zeros(12, np.int64), np.zeros(12, np.int64))
    past, found = past_of(rows, total / 2**20, np.full(12, 0.8 * 2**20), kin, reference=28)
    centre = shrunk(past.of(slice(None), -1), found).centre
    assert centre[10] < 7
    assert centre[11] > 8.5


def test_what_days_of_the_week_have_in_common_is_taken_off(rng: np.random.Generator) -> None:
    """Sundays of all cells of a task are lower by a half; those of another task are not."""
    rows = rng.poisson(30, (40, 85))
    family = np.repeat([0, 1], 20)
    low = -0.7 * (np.arange(85) % 7 == 6) * (family == 0)[:, None]
    noise = 0.1 * rng.standard_normal(rows.shape)
    total = np.rint(rows * (6 + low + noise) * 2**20).astype(np.int64)
    left = without_week(rows, total, Kin(np.arange(40), family)) / np.maximum(rows, 1)
    sundays = np.arange(85) % 7 == 6
    for task in (0, 1):
        own = left[family == task]
        assert own[:, sundays].mean() == pytest.approx(own[:, ~sundays].mean(), abs=0.02)


def test_a_rank_among_others_is_a_p_value() -> None:
    past = np.array([1.0, 2.0, 2.0, 3.0])
    assert rank_p_values(np.array([4.0, 3.0, 2.0, 0.0, np.nan]), past)[:4].tolist() == [0.2, 0.4, 0.8, 1.0]
    assert rank_p_values(np.array([5.0]), np.empty(0)).tolist() == [1.0]


def test_a_new_cell_starts_from_its_parent_and_is_no_alarm_for_being_new(rng: np.random.Generator) -> None:
    """Forty cells of four tenants and one task; one of them is a version that had no rows until today."""
    series, day, tokens = lognormal(rng, 40, 20, days=DAYS)
    keep = (series != 7) | (day == DAYS - 1)
    history = history_of(series[keep], day[keep], tokens[keep], length=DAYS, tenants=4)
    row = judged(window_of(history), policy()).filter(TOKENS & (pl.col("model") == "m-7")).row(0, named=True)
    assert (row["rows"], row["method"], row["reported"]) == (0, str(BaselineMethod.SIBLINGS), False)
    assert row["centre"] == pytest.approx(6, abs=0.6)
    assert row["lower"] < 400 < row["upper"]
    assert row["p_value"] > 0.001


def test_without_history_of_anybody_nothing_is_made_up() -> None:
    history = history_of(np.zeros(5, np.int64), np.full(5, DAYS - 1), np.arange(5), length=DAYS)
    row = judged(window_of(history), policy()).filter(TOKENS).row(0, named=True)
    assert row["method"] == str(BaselineMethod.REFUSED)
    assert [row[name] for name in ("lower", "upper", "limit", "promise", "p_value", "expected")] == [None] * 6


def test_cells_of_one_class_only_are_named_after_it(rng: np.random.Generator) -> None:
    history = history_of(*lognormal(rng, 3, 5, days=30), length=30)
    assert judged(window_of(history), policy()).filter(TOKENS)["token_class"].unique().to_list() == [NAME]
