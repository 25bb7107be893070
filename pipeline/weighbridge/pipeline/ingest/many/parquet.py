"""The readings of a file of records as one Parquet file, written as they are made."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from weighbridge.pipeline.ingest.many.columns import SCHEMA
from weighbridge.pipeline.ingest.many.many import read_usage_file
from weighbridge.schemas.enumerations import Verdict

_TEXTS = [name for name, kind in SCHEMA.items() if kind == pl.String()]


@dataclass(slots=True)
class Written:
    """What was written.

    Attributes:
        rows: readings, calls beside an answer among them.
        records: records that were read.
        verdicts: of how many readings each verdict is.
        errors: lines that hold no record, by why; each has a row with nothing else.
        unreadable: records with a value that is no count.
        nameless: records that name no API, and are UNKNOWN for that.
    """

    rows: int = 0
    records: int = 0
    unreadable: int = 0
    nameless: int = 0
    verdicts: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)

    def add(self, frame: pl.DataFrame) -> None:
        """Count the rows of a frame of readings."""
        read = frame.filter(pl.col("error").is_null())
        self.rows += frame.height
        own = read.filter(pl.col("child") == 0)
        self.records += own.height
        self.nameless += own.filter(pl.col("api").is_null(), verdict=str(Verdict.UNKNOWN)).height
        self.unreadable += read.filter(pl.col("flags").list.contains("unreadable")).height
        self.verdicts.update(dict(read["verdict"].value_counts().rows()))
        self.errors.update(dict(frame["error"].drop_nulls().value_counts().rows()))


def write_readings(path: Path | str, out: Path | str, *, threads: int = 2) -> Written:
    """Read a JSON Lines file of records and write their readings as Parquet.

    Args:
        path: one record a line, as for `read_usage_file`.
        out: the file to be written; it appears when it is whole.
        threads: how many read.

    Raises:
        ContractError: the compressed file is damaged.
        OSError: a file cannot be read or written.
    """
    written, out = Written(), Path(out)
    schema = pl.DataFrame(schema=dict(SCHEMA)).to_arrow(compat_level=pl.CompatLevel.oldest()).schema
    partial = out.with_name(f".{out.name}.partial")
    try:
        with pq.ParquetWriter(partial, schema, compression="zstd", use_dictionary=_TEXTS) as writer:
            for frame in read_usage_file(path, threads=threads):
                written.add(frame)
                writer.write_table(_table(frame, schema))
        partial.replace(out)
    finally:
        partial.unlink(missing_ok=True)
    return written


def _table(frame: pl.DataFrame, schema: pa.Schema) -> pa.Table:
    return frame.to_arrow(compat_level=pl.CompatLevel.oldest()).cast(schema)
