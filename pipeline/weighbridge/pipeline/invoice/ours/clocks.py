"""The clocks that calls may be put into periods by: when they arrived, and those that a provider may take instead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from weighbridge.pipeline.invoice.spans import Span

ARRIVED = "arrived"


def clocks(zone: str) -> Mapping[str, pl.Expr]:
    """Name -> the moment of calls that have `at` and `ended`.

    A clock time that is there twice, or not at all, is the earlier one, or stays what it was.
    """
    found = {ARRIVED: pl.col("at"), "counted_when_over": pl.col("ended")}
    if zone != "UTC":
        naive = pl.col("at").dt.replace_time_zone(None)
        local = naive.dt.replace_time_zone(zone, ambiguous="earliest", non_existent="null").dt.convert_time_zone("UTC")
        as_utc = pl.col("at").dt.convert_time_zone(zone).dt.replace_time_zone(None).dt.replace_time_zone("UTC")
        found |= {
            name: pl.coalesce(moved, "at").dt.cast_time_unit("us")
            for name, moved in (("cut_by_utc", local), ("cut_by_the_billing_zone", as_utc))
        }
    return found


def span_numbers(moments: pl.Series, spans: Sequence[Span]) -> pl.Series:
    """The number of the period each moment lies in; -1 for those in none.

    Args:
        moments: UTC, to the microsecond.
        spans: disjoint periods in order.
    """
    if not spans:
        return pl.repeat(-1, len(moments), dtype=pl.Int64, eager=True)
    starts, ends = (pl.Series([span[side] for span in spans], dtype=moments.dtype) for side in (0, 1))
    number = starts.search_sorted(moments, side="right").cast(pl.Int64) - 1
    ended = ends.gather(number.clip(0))
    inside = (number >= 0) & (moments < ended)
    return pl.select(pl.when(inside).then(number).otherwise(-1)).to_series()
