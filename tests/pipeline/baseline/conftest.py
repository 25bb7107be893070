"""Histories written down in a test, without a lake, and lakes with a few weeks of made-up traffic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

from weighbridge.pipeline.baseline.history import NO_HOUR, SCALE, UNKNOWN, History, Rows
from weighbridge.pipeline.baseline.policy import BaselinePolicy
from weighbridge.pipeline.baseline.usage import COUNTS, SERIES
from weighbridge.pipeline.baseline.window import Window
from weighbridge.pipeline.lake import Lake
from weighbridge.pipeline.simulate.incidents import Day, Incident, Lengths, Line, made_up_lengths, month, prices
from weighbridge.schemas.enumerations import TokenClass

FIRST = date(2026, 1, 5)  # a Monday
NAME = str(TokenClass.INPUT_UNCACHED)
Ints = NDArray[np.int64]


def y_of(tokens: Ints | Sequence[int]) -> NDArray[np.int32]:
    """Tokens on the scale they are measured on."""
    scaled: NDArray[np.int32] = np.rint(np.log1p(np.asarray(tokens)) * SCALE).astype(np.int32)
    return scaled


def history_of(
    series: Ints,
    day: Ints,
    tokens: Ints,
    *,
    length: int,
    hour: NDArray[np.uint8] | None = None,
    tasks: int = 1,
    tenants: int | None = None,
) -> History:
    """A history of one class of tokens; every attempt is a request of its own.

    Args:
        series, day, tokens: per attempt.
        length: days of the history.
        hour: of the UTC week; unknown if left out.
        tasks, tenants: how many the series are dealt out to; a tenant of its own each if left out.
    """
    order = np.argsort(day, kind="stable")
    series, day, tokens = series[order], day[order], np.asarray(tokens)[order]
    hour = None if hour is None else hour[order]
    kinds = int(series.max(initial=-1)) + 1
    blank = np.full(len(series), UNKNOWN, np.int32)
    own = y_of(tokens)
    rows = Rows(
        series=series.astype(np.int32),
        day=day.astype(np.int16),
        hour=np.full(len(series), NO_HOUR, np.uint8) if hour is None else hour,
        y={name: own if name == NAME else blank for name in COUNTS},
    )
    frame = pl.DataFrame({"series": series, "day": day.astype(np.int16), "x": tokens, "y": own.astype(np.int64)})
    one, zero = pl.len().cast(pl.Int64), pl.lit(0, dtype=pl.Int64)
    facts = frame.group_by("series", "day").agg(
        attempts=one,
        requests=one,
        tries=one,
        retries=zero,
        **{f"n_{NAME}": one, f"x_{NAME}": pl.col("x").sum(), f"y_{NAME}": pl.col("y").sum()},
        n_input_total=one,
        x_input_total=pl.col("x").sum(),
    )
    labels = pl.DataFrame(
        {
            "tenant": [f"t_{number % (tenants or max(kinds, 1)):016x}" for number in range(kinds)],
            "task": [f"task-{number % tasks}" for number in range(kinds)],
            "model": [f"m-{number}" for number in range(kinds)],
            **dict.fromkeys(SERIES[3:], [None] * kinds),
        },
        schema=dict.fromkeys(SERIES, pl.String),
    )
    return History(
        first=FIRST,
        length=length,
        labels=labels,
        rows=rows,
        facts=facts.sort("series", "day"),
        judged=pl.DataFrame(),
        classes=(NAME,),
    )


def window_of(history: History, today: int | None = None, *, reference: int = 28, season: int = 84) -> Window:
    """The last day of a history, or another one, beside the days before it."""
    nothing = np.zeros((history.series, history.length), bool)
    return Window(
        history=history,
        today=history.length - 1 if today is None else today,
        reference_days=reference,
        season_days=season,
        out=nothing,
        reported=nothing,
    )


def lognormal(
    rng: np.random.Generator,
    cells: int,
    a_day: float,
    *,
    days: int = 85,
    between: float = 0.4,
    within: float = 0.8,
    of_days: float = 0.0,
) -> tuple[Ints, Ints, Ints]:
    """Series, day and tokens of cells whose rows, days and means differ as said, in logarithms."""
    counts = rng.poisson(a_day, (cells, days))
    centre = rng.normal(6, between, (cells, 1)) + rng.normal(0, of_days, (cells, days))
    flat = counts.ravel()
    series = np.repeat(np.arange(cells * days) // days, flat)
    day = np.repeat(np.arange(cells * days) % days, flat)
    y = np.repeat(centre.ravel(), flat) + within * rng.standard_normal(len(series))
    return series, day, np.rint(np.exp(y)).astype(np.int64)


def policy(**changes: object) -> BaselinePolicy:
    """The default policy without a task table and with a low floor, changed where said."""
    return replace(BaselinePolicy.default(), **{"tasks": {}, "floor": Decimal("0.01"), **changes})  # type: ignore[arg-type]


LENGTHS: dict[str, Lengths] = {"made up": made_up_lengths(3)}


def line(number: int, **changes: object) -> Line:
    """A line of traffic: three tasks of each tenant, one model of each task."""
    given: dict[str, object] = {
        "tenant": f"t_{number // 3:016x}",
        "task": ("chat", "code", "search")[number % 3],
        "model": f"model-{number % 3}",
        "lengths": "made up",
        "requests": 60.0,
        **changes,
    }
    return Line(**given)  # type: ignore[arg-type]


def lake_of(
    root: Path,
    lines: Sequence[Line],
    incidents: Sequence[Incident] = (),
    *,
    days: int,
    seed: int = 1,
    priced: bool = True,
) -> tuple[Lake, list[date]]:
    """A lake with days of made-up traffic, and the days."""
    lake = Lake.create(root)
    if priced:
        lake.append("price", prices(lines, incidents))
    drawn = list(month(LENGTHS, lines, incidents, seed=seed, start=FIRST, days=days))
    for table in ("attempt", "reading", *(["priced_amount"] if priced else [])):
        lake.append(table, pl.concat([day.tables[table] for day in drawn]))
    return lake, [day.day for day in drawn]


def whole(days: Sequence[Day], table: str) -> pl.DataFrame:
    """The rows of one table of several days."""
    return pl.concat([day.tables[table] for day in days])


@pytest.fixture
def rng() -> np.random.Generator:
    """Random numbers that are the same in every run."""
    return np.random.default_rng(11)
