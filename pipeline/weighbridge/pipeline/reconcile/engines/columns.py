"""Columns of data files as an engine finds them: what a file is too old to have is null."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from typing import Any

import narwhals as nw
import polars as pl

from weighbridge.pipeline.lake.shape import polars_schema
from weighbridge.pipeline.reconcile.engines.engine import Frame

_TYPES: dict[pl.DataType, Any] = {
    pl.String(): nw.String(),
    pl.Int64(): nw.Int64(),
    pl.Int32(): nw.Int32(),
    pl.Boolean(): nw.Boolean(),
    pl.Float64(): nw.Float64(),
    pl.Date(): nw.Date(),
    pl.Datetime("us", "UTC"): nw.Datetime("us", "UTC"),
    pl.Decimal(38, 18): nw.Decimal(38, 18),
    pl.List(pl.String()): nw.List(nw.String()),
    pl.List(pl.Int64()): nw.List(nw.Int64()),
}


_FOLDER = re.compile(r"/day=(\d{4}-\d\d-\d\d)/[^/]*$")


def day_of(address: str) -> date | None:
    """The day of a data file, which is that of its folder; null where it lies in none."""
    found = _FOLDER.search(address)
    return date.fromisoformat(found[1]) if found else None


def with_columns_of(table: str, stored: Frame, columns: Sequence[str]) -> Frame:
    """Exactly these columns of the table, those that are not stored as nulls of their type."""
    there, types = set(stored.collect_schema().names()), polars_schema(table)
    nulls = {name: nw.lit(None, dtype=_TYPES[types[name]]) for name in columns if name not in there}
    return (stored.with_columns(**nulls) if nulls else stored).select(*columns)
