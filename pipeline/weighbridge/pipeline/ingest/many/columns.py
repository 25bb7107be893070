"""The columns of readings of many records, and readings that are made one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import polars as pl

from weighbridge.pipeline.ingest.reading import CELL_NAMES, CLASS_NAMES, UsageReading, named, read_usage
from weighbridge.schemas.enumerations import QuarantineReason

TOTALS = ("input_total", "output_total", "total")
ESTIMATES = tuple(f"estimated_{name}" for name in TOTALS)
# The columns of readings of many records, in their order.
SCHEMA: Mapping[str, pl.DataType] = {
    "record": pl.Int64(),
    "child": pl.Int32(),
    **dict.fromkeys(("provider", "api", "model", "dialect", "verdict", "reason", "rule"), pl.String()),
    **dict.fromkeys((*CLASS_NAMES, *CELL_NAMES, *TOTALS, "reported_total"), pl.Int64()),
    "ended": pl.String(),
    "flags": pl.List(pl.String()),
    **dict.fromkeys(ESTIMATES, pl.Int64()),
    "error": pl.String(),
}
TEXTS = tuple(name for name, kind in SCHEMA.items() if kind == pl.String())
COUNTS = (*CLASS_NAMES, *CELL_NAMES, *TOTALS, "reported_total", *ESTIMATES)
Told = tuple[int, Mapping[str, object] | QuarantineReason]


def one_by_one(told: Iterable[Told], read: Callable[[Mapping[str, object]], UsageReading] = read_usage) -> pl.DataFrame:
    """Readings of records that are read one by one, and a row for each line that cannot be."""
    rows: list[dict[str, object]] = []
    for number, record in told:
        if isinstance(record, QuarantineReason):
            rows.append({"record": number, "child": 0, "error": str(record)})
            continue
        reading = read(record)
        rows += [
            {"record": number, "child": nth, **row_of(one)} for nth, one in enumerate((reading, *reading.children))
        ]
    return pl.DataFrame(rows, schema=dict(SCHEMA))


def row_of(reading: UsageReading) -> dict[str, object]:
    """The columns of one reading but for `record` and `child`; what is not among them is null."""
    estimated = reading.estimated or {}
    return {
        "provider": named(reading.provider),
        "api": named(reading.api),
        **{name: getattr(reading, name) for name in ("model", "dialect", "reason", "rule", *TOTALS, "reported_total")},
        "verdict": str(reading.verdict),
        **reading.counts,
        **reading.cells,
        "ended": str(reading.ended),
        "flags": list(reading.flags),
        **{f"estimated_{name}": count for name, count in estimated.items()},
    }
