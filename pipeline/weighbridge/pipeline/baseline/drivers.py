"""What moved where a cell left its baseline: the largest factor of the change.

    requests of the series  =  requests of its tenant and task  x  its share of them
    tokens of an input class per request  =  input tokens per request  x  the share of that class in them

A factor is named where it makes up more than half of the change, in logarithms; else it is the other one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import date

import numpy as np
import polars as pl

from weighbridge.pipeline.baseline.usage import KEY, SERIES
from weighbridge.pipeline.baseline.window import Window
from weighbridge.pipeline.lake.records import Records
from weighbridge.schemas.enumerations import Direction, Driver, TokenClass
from weighbridge.schemas.lattice import direction_of

# So much of the additional requests by one key, or by one route, is a burst of it.
_BURST = 0.8
# Where a burst is looked for, in this order.
_KEYS = ("subject_bucket", "route")


def of_tokens(window: Window, series: int, token_class: TokenClass) -> Driver:
    """What moved where the requests of a series take more tokens of a class."""
    if direction_of(token_class) is Direction.OUTPUT:
        return Driver.OUTPUT_PER_REQUEST
    whole = _growth(window, series, "input_total")
    part = _growth(window, series, token_class)
    if whole is None or part is None:
        return Driver.INPUT_PER_REQUEST
    if token_class is TokenClass.CACHE_READ:
        # More of it is cheap unless it comes on top of what is paid in full.
        fresh = _growth(window, series, TokenClass.INPUT_UNCACHED) or 0.0
        return Driver.CACHE_SHARE if fresh < 0 else Driver.INPUT_PER_REQUEST
    return Driver.INPUT_PER_REQUEST if whole > part / 2 else Driver.CACHE_SHARE


def _growth(window: Window, series: int, name: str) -> float | None:
    """The logarithm of tokens per request, day over reference; null where one side has none."""
    n_day, x_day = window.day(f"n_{name}")[series], window.day(f"x_{name}")[series]
    n_past, x_past = window.reference(f"n_{name}")[series], window.reference(f"x_{name}")[series]
    if not n_day or not n_past:
        return None
    # One token more on both sides keeps a class that was never used within reach.
    return math.log((x_day / n_day + 1) / (x_past / n_past + 1))


@dataclass(frozen=True, slots=True)
class Requests:
    """Requests of every series of the day, and how many were expected of each.

    Attributes:
        observed, expected: per series; expected is NaN where a series has no baseline yet.
    """

    observed: np.ndarray[tuple[int], np.dtype[np.int64]]
    expected: np.ndarray[tuple[int], np.dtype[np.float64]]

    def moved_elsewhere(self, window: Window, series: int) -> bool:
        """Whether a series grew because requests of its tenant and task came to it, not because there are more."""
        parent = window.kin.parent == window.kin.parent[series]
        known = np.where(np.isfinite(self.expected), self.expected, 0.0)
        own = math.log((self.observed[series] + 1) / (known[series] + 1))
        whole = math.log((self.observed[parent].sum() + 1) / (known[parent].sum() + 1))
        return whole < own / 2


def burst_key(
    records: Records, names: dict[str, str | None], day: date, first: date, ordinary: float, expected: float
) -> str | None:
    """The key or route that brought most of the additional requests, as name=value; null where none did.

    Args:
        records: table `attempt`.
        names: the columns of `SERIES` of the series.
        day: the judged day.
        first: first day of the reference.
        ordinary: requests of the series in the reference.
        expected: requests that were expected of the day.
    """
    columns = [*KEY, "day", "attempt_number", "model_served", "model_requested", *_KEYS]
    columns += [name for name in SERIES if name != "model"]
    rows = records.scan("attempt", first=first, last=day, columns=columns)
    rows = rows.with_columns(pl.coalesce("model_served", "model_requested").alias("model"))
    same = pl.all_horizontal(pl.col(name).eq_missing(value) for name, value in names.items())
    own = rows.filter(same & ~(pl.col("attempt_number") > 1).fill_null(value=False)).unique(KEY)
    counts = own.group_by(_KEYS).agg(
        now=(pl.col("day") == day).sum().cast(pl.Int64), before=(pl.col("day") < day).sum().cast(pl.Int64)
    )
    held = counts.collect(engine="streaming")
    more = float(held["now"].sum()) - expected
    for name in _KEYS:
        known = held.drop_nulls(name).group_by(name).agg(pl.col("now").sum(), pl.col("before").sum())
        # Of one value alone nothing can be told.
        if known.height < 2:
            continue
        usual = expected / ordinary if ordinary else 0.0
        excess = known.with_columns(more=pl.col("now") - pl.col("before") * usual).sort(["more", name], descending=True)
        if excess["more"][0] >= _BURST * more:
            return f"{name}={excess[name][0]}"
    return None
