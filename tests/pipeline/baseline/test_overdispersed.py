"""Nothing changed, but rows of a day have something in common: the promise holds all the same.

The ways in which days can scatter beyond chance are made up here: the middle of a day moves, or its top; requests come
in conversations, or are sent twice.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray
from tests.pipeline.baseline.conftest import Ints, history_of, policy, window_of

from weighbridge.pipeline.baseline.judge import judged
from weighbridge.schemas.enumerations import Measure

Floats = NDArray[np.float64]
Kind = Callable[[np.random.Generator, Ints, Ints, tuple[int, int]], Floats]
DAYS, NIGHTS = 45, 12
ALIKE = (60.0,) * 30
MIXED = (20.0,) * 20 + (100.0,) * 8 + (800.0,) * 2


def middle(size: float) -> Kind:
    """All rows of a day are longer or shorter."""

    def rows(rng: np.random.Generator, cell: Ints, day: Ints, shape: tuple[int, int]) -> Floats:
        return rng.standard_normal(len(cell)) + rng.normal(0, size, shape)[cell, day]

    return rows


def top(size: float) -> Kind:
    """The upper half of a day is longer or shorter; its middle is as ever."""

    def rows(rng: np.random.Generator, cell: Ints, day: Ints, shape: tuple[int, int]) -> Floats:
        row = rng.standard_normal(len(cell))
        return np.where(row > 0, row * np.exp(rng.normal(0, size, shape))[cell, day], row)

    return rows


def runs(mean: float, common: float) -> Kind:
    """Rows come in runs of this mean length that have this part of their variance in common."""

    def rows(rng: np.random.Generator, cell: Ints, day: Ints, shape: tuple[int, int]) -> Floats:
        edge = np.r_[True, (np.diff(cell) != 0) | (np.diff(day) != 0)]
        run = np.cumsum(edge | (rng.random(len(cell)) < 1 / mean)) - 1
        shared = rng.standard_normal(int(run[-1]) + 1)[run]
        found: Floats = np.sqrt(common) * shared + np.sqrt(1 - common) * rng.standard_normal(len(cell))
        return found

    return rows


def night(seed: int, a_day: tuple[float, ...], kind: Kind) -> pl.DataFrame:
    """The token rows of a night of thirty cells of three tasks."""
    rng = np.random.default_rng([seed, 17])
    shape = (len(a_day), DAYS)
    counts = rng.poisson(np.array(a_day)[:, None], shape).ravel()
    place = np.repeat(np.arange(counts.size), counts)
    cell, day = place // DAYS, place % DAYS
    y = rng.normal(6, 0.4, len(a_day))[cell] + 0.8 * kind(rng, cell, day, shape)
    history = history_of(cell, day, np.rint(np.exp(y)).astype(np.int64), length=DAYS, tasks=3)
    return judged(window_of(history), policy()).filter(pl.col("measure") == str(Measure.TOKENS))


@pytest.mark.parametrize("a_day", [ALIKE, MIXED], ids=["cells alike", "large and small cells"])
@pytest.mark.parametrize(
    "kind",
    [middle(0.08), middle(0.15), top(0.15), top(0.3), runs(4, 0.5), runs(2, 1.0)],
    ids=["middle, a little", "middle", "top, a little", "top", "conversations", "sent twice"],
)
def test_nothing_is_reported_because_days_scatter(kind: Kind, a_day: tuple[float, ...]) -> None:
    """At most one p-value in twenty and a hundred is as small, and a night in twenty has a report, but for chance."""
    nights = [night(seed, a_day, kind) for seed in range(NIGHTS)]
    found = pl.concat(nights)["p_value"].drop_nulls().to_numpy()
    assert len(found) > 0.95 * NIGHTS * len(a_day)
    for level in (0.05, 0.01):
        assert (found <= level).sum() <= len(found) * level + 4 * np.sqrt(len(found) * level)
    assert sum(bool(each["reported"].any()) for each in nights) <= 3  # one in a thousand has more
