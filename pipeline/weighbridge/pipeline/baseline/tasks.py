"""What requests of a task took beside what is declared for it in the task table."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

import numpy as np
import polars as pl
from numpy.typing import NDArray

from weighbridge.pipeline.baseline.cells import Columns, cell_rows
from weighbridge.pipeline.baseline.history import UNKNOWN, Ints
from weighbridge.pipeline.baseline.limits import ordered, tokens_at
from weighbridge.pipeline.baseline.policy import TaskBand
from weighbridge.pipeline.baseline.window import Window
from weighbridge.schemas.enumerations import BaselineMethod, Direction, Driver, Measure

# Fewer requests say too little about where their median lies.
FEWEST = 20
_MEASURES = {
    Direction.INPUT: (Measure.INPUT, "input_total", Driver.INPUT_PER_REQUEST),
    Direction.OUTPUT: (Measure.OUTPUT, "output_total", Driver.OUTPUT_PER_REQUEST),
}


def task_rows(window: Window, tasks: Mapping[str, TaskBand]) -> pl.DataFrame | None:
    """Rows of `baseline` of every series whose task is in the table, per direction; null where there is none.

    The band needs no history, so a cell has limits from its first request on. The median is that of the reference
    and the day together; a row is reported where it lies outside the band.
    """
    day = window.history.first + timedelta(days=window.today)
    names = window.history.labels["task"].to_list()
    declared = np.array([name in tasks for name in names], bool)
    if not declared.any():
        return None
    frames = []
    for direction, (measure, total, driver) in _MEASURES.items():
        band = np.array([tasks[name].band(direction) if name in tasks else (-1, -1) for name in names], np.int64)
        rows, y = window.history.rows, window.history.rows.y[total]
        held = (rows.day >= window.today - window.reference_days) & (rows.day <= window.today) & (y != UNKNOWN)
        held &= ~window.out[rows.series, rows.day] | (rows.day == window.today)
        at = np.flatnonzero(held)
        own, value, new = rows.series[at], y[at], rows.day[at] == window.today
        seen = ordered(own, value, window.history.series)
        median = tokens_at(np.where(seen.sizes > 0, seen.median(), 0), seen.sizes > 0)
        outside = (seen.sizes >= FEWEST) & ((median < band[:, 0]) | (median > band[:, 1]))
        columns: Columns = {
            "method": str(BaselineMethod.TASK_TABLE),
            "rows": seen.sizes - _count(own[new], window),
            "days": window.reference_days_with(f"n_{total}"),
            "lower": band[:, 0],
            "upper": band[:, 1],
            "day_rows": _count(own[new], window),
            "exceeding": _count(own[new][tokens_at(value[new], new[new]) > band[own[new], 1]], window),
            "median": median,
            "observed": window.day(f"x_{total}"),
            "reported": outside,
            "driver": np.where(outside, str(driver), ""),
        }
        frame = cell_rows(window.history.labels, day, measure, None, declared & (seen.sizes > 0), columns)
        frames.append(frame.with_columns(pl.when(pl.col("driver") != "").then("driver").alias("driver")))
    return pl.concat(frames)


def _count(series: NDArray[np.int32], window: Window) -> Ints:
    found: Ints = np.bincount(series, minlength=window.history.series)
    return found
