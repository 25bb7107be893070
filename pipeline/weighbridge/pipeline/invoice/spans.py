"""The periods of cells: the charge periods of lines, overlapping ones as one, and the days of the month beside them.

A line of a day and a line of the month it lies in can only be compared together, so their cell is the month. What no
line covers stays in cells of a day, by the clock of the billing zone. Periods are disjoint and cover the month.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

import polars as pl

from weighbridge.pipeline.ingest.charges.days import begin_of
from weighbridge.pipeline.invoice.zones import day_of, span_of

Span = tuple[datetime, datetime]
MOMENT = pl.Datetime("us", "UTC")


def merged(spans: Iterable[Span]) -> list[Span]:
    """Overlapping periods put together; periods that only touch stay apart. Empty ones are left out."""
    out: list[Span] = []
    for start, end in sorted(set(spans)):
        if end <= start:
            continue
        if out and start < out[-1][1]:
            out[-1] = (out[-1][0], max(out[-1][1], end))
        else:
            out.append((start, end))
    return out


def periods(charged: Sequence[Span], month: str, zone: str, foreign: Sequence[Span] = ()) -> list[Span]:
    """The disjoint periods of a month: those of lines (merged), and the days, or parts of days, beside them.

    Args:
        charged: the charge periods of its lines.
        month: `YYYY-MM`.
        zone: the billing zone.
        foreign: the charge periods of lines of other months: what they cover is compared there.
    """
    begin, stop = span_of(month, zone)
    out = merged(charged)
    lines = merged([*charged, *foreign])
    at = begin
    while at < stop:
        following = min(begin_of(day_of(at, zone) + timedelta(days=1), zone), stop)
        out += _without((at, following), lines)
        at = following
    return sorted(out)


def _without(day: Span, lines: Sequence[Span]) -> list[Span]:
    """What is left of a day beside the periods of lines."""
    left, at = [], day[0]
    for start, end in lines:
        if end <= at or start >= day[1]:
            continue
        if start > at:
            left.append((at, start))
        at = max(at, end)
    return [*left, (at, day[1])] if at < day[1] else left


def placed(rows: pl.DataFrame, spans: Sequence[Span]) -> pl.DataFrame:
    """The rows with `start` and `end` of the period their `at` lies in; both null for those in none."""
    table = pl.DataFrame(
        {"start": [start for start, _ in spans], "end": [end for _, end in spans]},
        schema={"start": MOMENT, "end": MOMENT},
    ).sort("start")
    found = rows.sort("at", maintain_order=True).join_asof(table, left_on="at", right_on="start", strategy="backward")
    inside = (pl.col("at") < pl.col("end")).fill_null(value=False)
    return found.with_columns(pl.when(inside).then(name).alias(name) for name in ("start", "end"))
