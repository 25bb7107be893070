"""Usage reports to readings, many at a time: grouped by (provider, api, leaf shape), then solved as columns."""

from __future__ import annotations

from collections.abc import Collection
from datetime import date
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

    from weighbridge.pipeline.lake.lake import Lake


def read_reports(reports: pl.DataFrame) -> pl.DataFrame:
    """Rows of `usage_report` to rows of `reading`: parts of one report merged, in the order of the table's key."""
    raise NotImplementedError


def refresh_readings(lake: Lake, days: Collection[date]) -> int:
    """Read the last revision of every report of these days again and replace their readings; returns how many."""
    raise NotImplementedError
