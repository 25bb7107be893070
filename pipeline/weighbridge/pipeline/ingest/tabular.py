"""Tables of other people: CSV, JSON Lines and Parquet as columns, and the lines that could not be taken apart."""

from __future__ import annotations

import csv
import json
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import RawIOBase, TextIOWrapper
from pathlib import Path
from typing import BinaryIO

import polars as pl
import pyarrow as pa
from pyarrow import csv as arrow_csv

from weighbridge.pipeline.ingest.figures import UNREADABLE
from weighbridge.pipeline.ingest.json_lines import opened, read_lines
from weighbridge.schemas.enumerations import QuarantineReason
from weighbridge.schemas.errors import ConfigError, ContractError
from weighbridge.schemas.identity import shown

CSV, JSONL, PARQUET = "csv", "jsonl", "parquet"
_BLOCK = 64 * 2**20  # the longest row of a CSV file, bytes
# Text that stands for no value, where a mapping does not say otherwise.
NULLS = ("", "NULL")


@dataclass(frozen=True, slots=True)
class Layout:
    """How a text table is written.

    Attributes:
        separator, quote: of CSV; an empty quote where the file does not quote.
        nulls: texts that stand for no value, in any case.
    """

    separator: str = ","
    quote: str = '"'
    nulls: tuple[str, ...] = NULLS


@dataclass(frozen=True, slots=True)
class Rows:
    """What was read of a table.

    Attributes:
        columns: the columns that were asked for. CSV and JSON Lines give text, Parquet its own types.
        lines: the 0-based row each of them stands in: the line of JSON Lines, the row below the header of CSV.
        bad: (row, reason) of rows that could not be taken apart.
    """

    columns: pl.DataFrame
    lines: pl.Series
    bad: list[tuple[int, QuarantineReason]]


def kind_of(path: Path) -> str | None:
    """Which kind of table a file is, by its name."""
    name = path.name.lower().removesuffix(".gz")
    return next((kind for kind in (CSV, JSONL, PARQUET) if name.endswith("." + kind)), None)


def names_of(path: Path, layout: Layout) -> list[str]:
    """The names of a table's columns; of JSON Lines, the keys of its first object that can be read.

    Raises:
        ContractError: the file is no such table.
    """
    return _NAMES[_kind(path)](path, layout)


def check(path: Path, layout: Layout, wanted: Sequence[str]) -> None:
    """See that the whole file can be taken apart and has the columns that are wanted.

    Raises:
        ContractError: it cannot be taken apart at all.
        ConfigError: a column is missing or there twice.
    """
    found = names_of(path, layout)
    twice = sorted(name for name in wanted if found.count(name) > 1)
    # A line of JSON may leave a field out, so only the mapping of a table with a header can be held against it.
    missing = [] if _kind(path) == JSONL else [name for name in wanted if name not in found]
    if missing or twice:
        wrong = [f"{what} {names}" for what, names in (("does not have", missing), ("has twice", twice)) if names]
        raise ConfigError(
            f"{path}: the mapping names columns the file {' or '.join(wrong)}; "
            f"its columns are {shown(found)}. Correct the mapping file."
        )
    if _kind(path) == CSV:
        _check_quotes(path, layout)
        for _ in _csv_batches(path, layout, wanted, lambda _: None):
            pass


def read(path: Path, layout: Layout, wanted: Sequence[str]) -> Rows:
    """The columns `wanted` of a table. Text is trimmed, and null where it stands for no value.

    Raises:
        ContractError: the file cannot be taken apart.
    """
    rows = _READ[_kind(path)](path, layout, wanted)
    texts = [name for name, kind in rows.columns.schema.items() if kind == pl.String]
    nulls = sorted({null.upper() for null in layout.nulls})
    trimmed = rows.columns.with_columns(pl.col(texts).str.strip_chars()) if texts else rows.columns
    for name in texts:
        values = trimmed[name]
        empty = values.str.to_uppercase().is_in(nulls).fill_null(value=False)
        trimmed = trimmed.with_columns(values.set(empty, None))
    return Rows(trimmed, rows.lines, rows.bad)


def _kind(path: Path) -> str:
    kind = kind_of(path)
    if kind is None:
        raise ContractError(
            f"{path}: the kind of table is told by the name; .csv, .jsonl and .parquet are known. Rename the file."
        )
    return kind


class _Readable(RawIOBase):
    """A file whose bytes that are no UTF-8 are replaced by a mark no number and no name has.

    Arrow counts rows that are torn only where it can decode them, so bytes are mended before it sees them.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._decode = getincrementaldecoder("utf-8-sig")(errors="replace").decode
        self._ready = (
            b""  # a mark is longer than the byte it stands for, and nobody may be given more than they asked for
        )

    def read(self, size: int = -1) -> bytes:
        size = 2**20 if size < 0 else size
        while not self._ready and (raw := self._file.read(size)):
            self._ready = self._decode(raw).encode()
        if not self._ready:
            self._ready = self._decode(b"", True).encode()
        out, self._ready = self._ready[:size], self._ready[size:]
        return out

    def readable(self) -> bool:
        return True


def _csv_names(path: Path, layout: Layout) -> list[str]:
    quoting = {"quotechar": layout.quote} if layout.quote else {"quoting": csv.QUOTE_NONE}
    try:
        with opened(path) as file, TextIOWrapper(file, "utf-8-sig", "surrogateescape", newline="") as text:
            names = next(csv.reader(text, delimiter=layout.separator, **quoting), [])
    except csv.Error:
        names = []
    if not any(names) or not "".join(names).isprintable():
        raise ContractError(
            f"{path} does not begin with a line of column names in UTF-8; export it again with a header, as UTF-8"
        )
    return names


def _csv_batches(
    path: Path, layout: Layout, wanted: Sequence[str], skipped: Callable[[int], None]
) -> Iterator[pa.RecordBatch]:
    """The rows of a CSV file as text, block by block; rows with too few or too many values are told by number."""

    def skip(row: arrow_csv.InvalidRow) -> str:
        skipped(row.number)
        return "skip"

    try:
        with opened(path) as file:
            yield from arrow_csv.open_csv(
                _Readable(file),
                read_options=arrow_csv.ReadOptions(use_threads=False, block_size=_BLOCK),
                parse_options=arrow_csv.ParseOptions(
                    delimiter=layout.separator,
                    quote_char=layout.quote or False,
                    newlines_in_values=bool(layout.quote),
                    invalid_row_handler=skip,
                ),
                convert_options=arrow_csv.ConvertOptions(
                    include_columns=list(wanted), column_types=dict.fromkeys(wanted, pa.string())
                ),
            )
    except pa.ArrowInvalid:
        # Arrow's message may quote a row.
        raise ContractError(
            f"{path} cannot be taken apart as CSV: a row of more than {_BLOCK >> 20} MiB, or quotes that do not match. "
            "Name the separator and the quote in [source] of the mapping file, or export the file again."
        ) from None


def _check_quotes(path: Path, layout: Layout) -> None:
    """An open quote would swallow every row behind it, so their number must be even."""
    if not layout.quote:
        return
    mark, number = layout.quote.encode(), 0
    with opened(path) as file:
        while block := file.read(2**20):
            number += block.count(mark)
    if number % 2:
        raise ContractError(
            f"{path} has a quote that is never closed: rows behind it would be lost. Export the file again, or say "
            'quote = "" in [source] of the mapping file where the file does not quote.'
        )


def _read_csv(path: Path, layout: Layout, wanted: Sequence[str]) -> Rows:
    skipped: list[int] = []
    batches = _csv_batches(path, layout, wanted, skipped.append)
    data = pa.Table.from_batches(batches, schema=pa.schema(dict.fromkeys(wanted, pa.string())))
    # Rows are numbered from 1, the header among them.
    bad = sorted(number - 2 for number in skipped)
    lines = pl.int_range(data.num_rows + len(bad), dtype=pl.Int64, eager=True)
    columns = pl.DataFrame([pl.Series(name, data.column(name)) for name in wanted])
    kept = lines.filter(~lines.is_in(bad))
    return Rows(columns, kept, [(line, QuarantineReason.SCHEMA) for line in bad])


def _jsonl_names(path: Path, layout: Layout) -> list[str]:  # noqa: ARG001 - one signature for all kinds
    names = next((list(line.value) for line in read_lines(path) if line.value is not None), None)
    if names is None:
        raise ContractError(
            f"{path} holds no JSON object in any line: it is not JSON Lines, or damaged. Export it again, one object a "
            "line, in UTF-8."
        )
    return names


def _read_jsonl(path: Path, layout: Layout, wanted: Sequence[str]) -> Rows:  # noqa: ARG001 - as above
    columns: dict[str, list[str | None]] = {name: [] for name in wanted}
    lines, bad = [], []
    for line in read_lines(path):
        if line.value is None:
            bad.append((line.number, line.reason or QuarantineReason.NOT_JSON))
            continue
        lines.append(line.number)
        for name, values in columns.items():
            values.append(_plain(_at(line.value, name)))
    return Rows(pl.DataFrame(columns, schema=dict.fromkeys(wanted, pl.String)), pl.Series(lines, dtype=pl.Int64), bad)


def _at(record: Mapping[str, object], name: str) -> object:
    """The value of a key, or of a path of keys joined by dots."""
    if name in record:
        return record[name]
    head, _, rest = name.partition(".")
    inner = record.get(head)
    return _at(inner, rest) if rest and isinstance(inner, Mapping) else None


def _plain(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return json.dumps(value)
    return UNREADABLE if isinstance(value, dict | list) else str(value)


def _parquet_names(path: Path, layout: Layout) -> list[str]:  # noqa: ARG001 - as above
    try:
        return list(pl.read_parquet_schema(path))
    except pl.exceptions.PolarsError:
        raise ContractError(f"{path} is no Parquet file, or damaged; export it again") from None


def _read_parquet(path: Path, layout: Layout, wanted: Sequence[str]) -> Rows:  # noqa: ARG001 - as above
    try:
        columns = pl.read_parquet(path, columns=list(wanted), hive_partitioning=False)
    except pl.exceptions.PolarsError:
        raise ContractError(f"{path} is damaged: its columns cannot be read; export it again") from None
    return Rows(columns, pl.int_range(columns.height, dtype=pl.Int64, eager=True), [])


_NAMES: Mapping[str, Callable[[Path, Layout], list[str]]] = {
    CSV: _csv_names,
    JSONL: _jsonl_names,
    PARQUET: _parquet_names,
}
_READ: Mapping[str, Callable[[Path, Layout, Sequence[str]], Rows]] = {
    CSV: _read_csv,
    JSONL: _read_jsonl,
    PARQUET: _read_parquet,
}
