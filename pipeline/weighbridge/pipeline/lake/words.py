"""A table file by file: its rows, or its texts as the dictionaries they are stored with.

A column of names has millions of rows and a handful of distinct texts, and its files hold exactly that: each distinct
text once, and a small number per row. Read as it lies there, a rule about texts looks at the handful only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from weighbridge.pipeline.lake.failure import told
from weighbridge.pipeline.lake.files import Part
from weighbridge.pipeline.lake.footer import columns as columns_of
from weighbridge.pipeline.lake.lake import Lake
from weighbridge.pipeline.lake.shape import declared, polars_schema
from weighbridge.pipeline.lake.sound import check_end


def files(table: str, parts: Iterable[Part]) -> Iterator[tuple[Part, pl.LazyFrame]]:
    """Each file and its rows; cheaper than a filtered scan per day where a table has many days.

    Args:
        table: the table.
        parts: files of `Lake.parts`; the lake's lock keeps them from being taken away meanwhile.

    Raises:
        LakeError: a file is not there, or cut off.
    """
    types = polars_schema(table)
    stored = {name: kind for name, kind in types.items() if name != "day"} if declared(table).daily else types
    for part in parts:
        address = part.address.removeprefix("file://")
        if "://" not in address:
            check_end(address.partition("/day=")[0], Path(address))
        rows = pl.scan_parquet(address, schema=stored, missing_columns="insert", hive_partitioning=False, glob=False)
        yield part, rows.with_columns(day=pl.lit(part.day, pl.Date)) if part.day is not None else rows


@dataclass(frozen=True, slots=True)
class Bound:
    """What a file says of a column of whole numbers or moments, without its values being read.

    Attributes:
        least, most: the least and the greatest value; null where all are null.
        nulls: how many are null.
    """

    least: int | datetime | None
    most: int | datetime | None
    nulls: int


def bounds(lake: Lake, part: Part) -> dict[str, Bound]:
    """The bounds of the columns of one file, from its footer: written with the values, and readers skip by them.

    A column is left out that holds neither whole numbers nor moments, or of which the footer does not say it of every
    stretch of rows.

    Raises:
        LakeError: the file cannot be read.
    """
    with told(f"reading {_named(lake, part)}", lake.root):
        store, path = lake.place.store_of(part.address)
        with store.open_input_file(path) as source:
            footer = pq.read_metadata(source)
    out: dict[str, Bound] = {}
    for index, name in enumerate(columns_of(footer)):
        chunks = [footer.row_group(group).column(index) for group in range(footer.num_row_groups)]
        # Of a file without any rows only its schema tells the type (see `footer.columns` for why it is not asked else).
        kind = chunks[0].physical_type if chunks else footer.schema.column(index).physical_type
        if kind in {"INT32", "INT64"}:
            bound = _bound([(chunk.num_values, chunk.statistics) for chunk in chunks])
            if bound is not None:
                out[name] = bound
    return out


def _bound(chunks: Sequence[tuple[int, Any]]) -> Bound | None:
    least: list[Any] = []
    most: list[Any] = []
    nulls = 0
    for values, said in chunks:
        if said is None or not said.has_null_count:
            return None
        nulls += said.null_count
        if said.null_count < values:
            if not said.has_min_max or not isinstance(said.min, (int, datetime)):
                return None
            least.append(said.min)
            most.append(said.max)
    return Bound(min(least, default=None), max(most, default=None), nulls)


def texts(
    lake: Lake, table: str, columns: Sequence[str], parts: Iterable[Part]
) -> Iterator[tuple[date | None, dict[str, pa.DictionaryArray]]]:
    """Day and columns of each stretch of rows, one stretch in memory at a time.

    Args:
        lake: the lake.
        table: the table.
        columns: columns of strings. One that a file is too old to have is null there.
        parts: files of `Lake.parts`; the lake's lock keeps them from being taken away meanwhile.

    Raises:
        LakeError: a file cannot be read.
    """
    for part in parts:
        with told(f"reading {table} in {_named(lake, part)}", lake.root):
            store, path = lake.place.store_of(part.address)
            with store.open_input_file(path) as source:
                footer = pq.read_metadata(source)
                stored = set(columns_of(footer))
                held = [name for name in columns if name in stored]
                file = pq.ParquetFile(source, metadata=footer, read_dictionary=held)
                for group in range(footer.num_row_groups):
                    rows = file.read_row_group(group, columns=held, use_threads=False) if held else None
                    for stretch in rows.to_batches() if rows is not None else [None]:
                        found = {} if stretch is None else dict(zip(held, _texts(stretch), strict=True))
                        length = footer.row_group(group).num_rows if stretch is None else stretch.num_rows
                        yield part.day, {name: found.get(name, _unknown(length)) for name in columns}


def _named(lake: Lake, part: Part) -> str:
    """A file by its place in the lake, which is what is restored from a backup."""
    return part.address.removeprefix("file://").removeprefix(f"{lake.root}/")


def _texts(stretch: pa.RecordBatch) -> Iterator[pa.DictionaryArray]:
    """The columns as dictionaries. One that has no type holds nothing; one of another type is no column of texts."""
    for name, column in zip(stretch.schema.names, stretch.columns, strict=True):
        if pa.types.is_null(column.type):
            yield _unknown(len(column))
        elif isinstance(column, pa.DictionaryArray):
            yield column
        else:
            raise pa.ArrowTypeError(f"{name} is no column of texts")


def _unknown(rows: int) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.nulls(rows, pa.int32()), pa.array([], pa.string()))
