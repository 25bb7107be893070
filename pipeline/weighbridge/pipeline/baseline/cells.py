"""Rows of the table `baseline` from columns that have one item per series."""

from __future__ import annotations

from datetime import date

import numpy as np
import polars as pl
from numpy.typing import NDArray

from weighbridge.pipeline.baseline.history import Mask
from weighbridge.pipeline.baseline.own_rows import SelfTest
from weighbridge.pipeline.baseline.usage import SERIES
from weighbridge.pipeline.lake.shape import polars_schema
from weighbridge.schemas.enumerations import Measure

Columns = dict[str, NDArray[np.generic] | str | float | None]
# The number of a row's series: it only lives until the table is written.
SERIES_INDEX = "series"
_DIGITS = 6


def cell_rows(
    labels: pl.DataFrame,
    day: date,
    measure: Measure,
    token_class: str | None,
    chosen: Mask,
    columns: Columns,
) -> pl.DataFrame:
    """Rows of `baseline` of one measure, with the number of their series beside.

    Args:
        labels: the columns of `SERIES`, one row per series.
        day: the judged day.
        measure, token_class: what was measured.
        chosen: per series whether it has a row.
        columns: name -> one item per series, or one value for all. In integers a negative figure is unknown, in real
            ones and in flags NaN; real ones are kept to six decimals, p-values to six digits.
    """
    at = np.flatnonzero(chosen)
    schema = polars_schema("baseline")
    frame = (
        labels[at]
        .select(SERIES)
        .with_columns(
            pl.lit(day).alias("day"),
            pl.lit(str(measure)).alias("measure"),
            pl.lit(token_class, dtype=pl.String).alias("token_class"),
            pl.Series(SERIES_INDEX, at, pl.Int64),
        )
    )
    for name, values in columns.items():
        if isinstance(values, np.ndarray):
            frame = frame.with_columns(_column(name, values[at], schema[name]))
        else:
            frame = frame.with_columns(pl.lit(values, dtype=schema[name]).alias(name))
    return frame


def of_test(test: SelfTest, kept: Mask) -> Columns:
    """The columns of a self-test, one item per series."""
    known = test.days > 0
    return {
        "kept": np.where(known, kept, np.nan),
        "test_days": np.where(known, test.days, -1),
        "test_alarms": np.where(known, test.alarms, -1),
        "dispersion": np.where(known, test.dispersion(), np.nan),
    }


def _column(name: str, values: NDArray[np.generic], kind: pl.DataType) -> pl.Series:
    if isinstance(kind, pl.Float64):
        known = np.isfinite(values.astype(np.float64))
        tidy = _digits(values.astype(np.float64)) if name == "p_value" else np.round(values.astype(np.float64), _DIGITS)
        return pl.Series(name, tidy, kind).set(pl.Series(~known), None)
    if isinstance(kind, pl.Boolean) and values.dtype.kind == "f":
        return pl.Series(name, values, nan_to_null=True).cast(kind)
    made = pl.Series(name, values).cast(kind)
    return made.set(made < 0, None) if kind.is_integer() else made


def _digits(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Six significant digits; nothing is smaller than 1e-300."""
    held = np.clip(np.where(np.isfinite(values), values, 1.0), 1e-300, 1.0)
    power = 10.0 ** np.floor(np.log10(held))
    out: NDArray[np.float64] = np.round(held / power, _DIGITS - 1) * power
    return out
