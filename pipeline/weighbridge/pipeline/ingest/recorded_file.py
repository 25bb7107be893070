"""A file in which recorded answers stand, read line by line into the columns that `read_usage_file` gives.

What reads many lines at once knows the words of `read_usage` alone, so each line is put into these first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq

from weighbridge.pipeline.ingest.json_lines import Line, opened, read_lines
from weighbridge.pipeline.ingest.many.columns import SCHEMA, one_by_one
from weighbridge.pipeline.ingest.many.many import read_usage_batch
from weighbridge.pipeline.ingest.many.parquet import Written
from weighbridge.pipeline.ingest.recorded import FLAVOR, as_record, why_unread
from weighbridge.schemas.enumerations import QuarantineReason, Verdict

_OLDEST = pl.CompatLevel.oldest()
_SIGN = f'"{FLAVOR}"'.encode()
_LOOKED = 2**20  # bytes looked through at once
_TOGETHER = 20_000  # lines, whole answers in memory


def has_recorded(path: Path) -> bool:
    """Whether a recorded answer may stand anywhere in a file; a pipe, which can be read once only, is taken to be so.

    Raises:
        ContractError: the compressed file is damaged.
    """
    if not path.is_file():
        return True
    with opened(path) as file:
        tail = b""
        while block := file.read(_LOOKED):
            if _SIGN in tail + block:
                return True
            tail = block[-len(_SIGN) :]
    return False


def read_recorded_file(path: Path) -> Iterator[pl.DataFrame]:
    """Readings as of `read_usage_file`, recorded answers among them; the same order, columns and errors."""
    waiting = read_lines(path)
    while lines := list(islice(waiting, _TOGETHER)):
        yield _read(lines)


def write_recorded(path: Path, out: Path) -> Written:
    """Write the readings of such a file as Parquet, as `write_readings` does those of any other; its errors, too."""
    written, schema = Written(), pl.DataFrame(schema=dict(SCHEMA)).to_arrow(compat_level=_OLDEST).schema
    partial = out.with_name(f".{out.name}.partial")
    try:
        with pq.ParquetWriter(partial, schema, compression="zstd") as writer:
            for frame in read_recorded_file(path):
                written.add(frame)
                writer.write_table(frame.to_arrow(compat_level=_OLDEST).cast(schema))
        partial.replace(out)
    finally:
        partial.unlink(missing_ok=True)
    return written


def nameless(out: Path) -> int:
    """How many records of a file of readings name no API, and are UNKNOWN for that."""
    none = pl.col("api").is_null() & pl.col("error").is_null()
    found = pl.scan_parquet(out).filter(none, child=0, verdict=str(Verdict.UNKNOWN))
    return int(found.select(pl.len()).collect().item())


def _read(lines: list[Line]) -> pl.DataFrame:
    numbers: list[int] = []
    records: list[Mapping[str, object]] = []
    apart: list[tuple[int, Mapping[str, object] | QuarantineReason]] = []
    for line in lines:
        if line.value is None:
            apart.append((line.number, line.reason or QuarantineReason.NOT_JSON))
        elif why_unread(line.value) is not None:
            apart.append((line.number, line.value))
        else:
            numbers.append(line.number)
            records.append(as_record(line.value))
    batch = read_usage_batch(records)
    places = pl.Series("record", numbers, dtype=pl.Int64)
    told = batch.with_columns(places.gather(batch["record"])) if numbers else batch
    return pl.concat([told.select(*SCHEMA), one_by_one(apart)]).sort("record", "child")
