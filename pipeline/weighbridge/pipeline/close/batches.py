"""Days taken together up to about so many rows: memory depends on those, not on the month."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date

import polars as pl

from weighbridge.pipeline.lake.records import Records

BATCH_ROWS = 400_000


def batches(
    places: Sequence[Records], tables: Sequence[str], first: date, last: date, rows: int = BATCH_ROWS
) -> Iterator[list[date]]:
    """The days from `first` to `last` on which any of these tables has rows in any of these places, a few at a time."""
    sizes: dict[date, int] = {}
    for place in places:
        for table in tables:
            counted = place.scan(table, first=first, last=last, columns=["day"]).group_by("day").len()
            for day, held in (
                counted.collect(engine="streaming").select("day", pl.col("len").cast(pl.Int64)).iter_rows()
            ):
                sizes[day] = sizes.get(day, 0) + held
    batch: list[date] = []
    held = 0
    for day in sorted(sizes):
        if batch and held + sizes[day] > rows:
            yield batch
            batch, held = [], 0
        batch.append(day)
        held += sizes[day]
    if batch:
        yield batch
