"""The data files of a table: one Parquet file per day and commit, its rows sorted by the key of the table.

We write them ourselves and hand the table format their names, because a sorted day is a promise other rooms build
on and the format's own writer does not make it. Each file is on disk before a commit names it.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path

import polars as pl
from deltalake.transaction import AddAction, RemoveAction

from weighbridge.pipeline.lake.order import mark
from weighbridge.pipeline.lake.place import Place
from weighbridge.pipeline.lake.shape import complete
from weighbridge.schemas.table import Table


@dataclass(frozen=True, slots=True)
class Part:
    """One data file of a table.

    Attributes:
        day: its day, null where the table is not kept by day.
        rows: how many rows it holds.
        address: where it lies; see `Place.store_of`.
    """

    day: date | None
    rows: int
    address: str


def by_day(about: Table, rows: pl.DataFrame) -> Iterator[tuple[date | None, pl.DataFrame]]:
    """The rows of each day, complete and sorted by key, one day at a time so that only one is held twice.

    Args:
        about: the table; one that is not kept by day comes as a whole, its day null.
        rows: its rows; see `shape.fitted`.
    """
    if not about.daily:
        if rows.height:
            yield None, ordered(about, rows)
        return
    days = rows["day"]
    if rows.height and not days.null_count() and days.min() == days.max():
        yield days[0], ordered(about, rows)  # a large day is not held once more to be taken out of itself
        return
    order = rows.select(pl.arg_sort_by("day", maintain_order=True)).to_series()
    start = 0
    for length, day in rows["day"].gather(order).rle().struct.unnest().select("len", "value").iter_rows():
        yield day, ordered(about, rows[order.slice(start, length)])
        start += length


def ordered(about: Table, rows: pl.DataFrame) -> pl.DataFrame:
    """Fitted rows with every column of the table, sorted by its key."""
    return complete(about.name, rows).sort(about.key, maintain_order=True)


def new_path(day: date | None) -> str:
    """A name inside the table's folder that no other file has."""
    folder = [] if day is None else [f"day={day.isoformat()}"]
    return "/".join([*folder, f"part-{uuid.uuid4()}.parquet"])


def write_file(place: Place, about: Table, day: date | None, rows: pl.DataFrame, path: str) -> AddAction:
    """Write one file of one day and say what it holds, for a commit to name.

    Args:
        place: the lake.
        about: the table.
        day: the day, null where the table is not kept by day.
        rows: its rows; see `ordered`.
        path: where in the table's folder; see `new_path`.
    """
    target = place.at(about.domain, about.name, path)
    stored = rows.drop("day") if about.daily else rows
    stored.write_parquet(
        _reachable(target), compression="zstd", compression_level=1, mkdir=True, metadata=mark(about, stored)
    )
    return AddAction(
        path=path,
        size=_size(place, target),
        partition_values={} if day is None else {"day": day.isoformat()},
        modification_time=time.time_ns() // 1_000_000,
        data_change=True,
        stats=json.dumps(_statistics(about, stored)),
    )


def remove_file(place: Place, about: Table, path: str) -> None:
    """Take away a file that no commit names; one that was never made is no error."""
    target = _reachable(place.at(about.domain, about.name, path))
    if "://" in target:
        store, name = place.store_of(target)
        store.delete_file(name)
    else:
        Path(target).unlink(missing_ok=True)


def _reachable(target: str) -> str:
    return target.removeprefix("file://")


def _size(place: Place, target: str) -> int:
    """The size of a file that was written; a local one is forced to the disk first."""
    path = _reachable(target)
    if "://" in path:
        store, name = place.store_of(path)
        return int(store.get_file_info(name).size)
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
        return os.fstat(handle).st_size
    finally:
        os.close(handle)


def _statistics(about: Table, rows: pl.DataFrame) -> dict[str, object]:
    """Number of rows, and least and greatest key and file of origin: what lets a reader leave the file alone."""
    public = set(about.public)
    names = [n for n in (*about.key, "segment") if n in public and n in rows.columns and n != "day"]
    names = [name for name in dict.fromkeys(names) if rows[name].null_count() == 0]
    return {
        "numRecords": rows.height,
        "minValues": {name: _plain(rows[name].min()) for name in names},
        "maxValues": {name: _plain(rows[name].max()) for name in names},
        "nullCount": dict.fromkeys(names, 0),
    }


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat(timespec="microseconds").replace("+00:00", "Z")
    return value.isoformat() if isinstance(value, date) else value


def removals(present: pl.DataFrame, day: date | None) -> list[RemoveAction]:
    """The actions that take the files of a day out of the table; they stay on disk until `compact` removes them."""
    now = time.time_ns() // 1_000_000
    values: dict[str, str | None] = {} if day is None else {"day": day.isoformat()}
    files = present.filter(pl.col("day").eq_missing(day)).select("path", "size")
    return [RemoveAction(path, True, now, size, values) for path, size in files.iter_rows()]
