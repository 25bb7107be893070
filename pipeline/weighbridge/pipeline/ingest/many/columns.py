"""Lines that are taken apart to rows of readings: those with a template as columns, the others one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby

import numpy as np
import polars as pl
import pyarrow as pa

from weighbridge.pipeline.ingest.dialect import Dialect
from weighbridge.pipeline.ingest.dialects import dialect_for
from weighbridge.pipeline.ingest.many.forms import Alike
from weighbridge.pipeline.ingest.many.runs import Ints
from weighbridge.pipeline.ingest.many.template import Template
from weighbridge.pipeline.ingest.reading import CELL_NAMES, CLASS_NAMES, UsageReading, named, read_usage
from weighbridge.pipeline.ingest.readings import read_single, unread_single
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
Told = tuple[int, Mapping[str, object] | QuarantineReason]


def of_alike(found: Sequence[Alike]) -> Iterator[pl.DataFrame]:
    """Readings of lines with a template; `record` is the number of the line."""
    by_speaker: dict[tuple[str | None, str | None, Dialect | None], list[Alike]] = {}
    for alike in found:
        one = alike.template
        dialect = dialect_for(one.provider, one.api, one.model, one.day)
        by_speaker.setdefault((one.provider, one.api, dialect), []).append(alike)
    for (provider, api, dialect), alikes in by_speaker.items():
        alikes.sort(key=_shape)
        records = np.concatenate([alike.numbers for alike in alikes])
        parts = _parts(alikes)
        if dialect is None:
            read = unread_single(provider, api, parts)
        else:
            cuts = [sum(len(alike.numbers) for alike in same) for _, same in groupby(alikes, _shape)]
            read = pl.concat(read_single(dialect, provider, parts, cuts), how="diagonal")
        yield _named(read, records, parts["model"], provider, api)


def _shape(alike: Alike) -> str:
    return alike.template.shape


def _parts(alikes: Sequence[Alike]) -> pl.DataFrame:
    """The lines as rows of parts; `row` is their place here."""
    templates = [alike.template for alike in alikes]
    sizes = [len(alike.numbers) for alike in alikes]
    of = pl.Series(np.repeat(np.arange(len(alikes)), sizes))
    row = pl.Series(np.arange(len(of)), dtype=pl.UInt32)
    texts = [one.part.flattened.texts() for one in templates]
    return pl.DataFrame(
        {
            "row": row,
            "report_id": row,
            "model": _of(of, [one.model for one in templates], pl.String()),
            "part_kind": _of(of, [str(one.part.part_kind) for one in templates], pl.String()),
            "ended": _of(of, [str(one.part.ended) for one in templates], pl.String()),
            "notes": _of(of, [list(one.part.notes) or None for one in templates], pl.List(pl.String())),
            "leaf_shape": _of(of, [one.shape for one in templates], pl.Categorical()),
            "leaf_integers": _lists(alikes),
            "leaf_texts": _of(of, texts, pl.List(pl.String())),
        }
    )


def _of(of: pl.Series, values: Sequence[object], kind: pl.DataType) -> pl.Series:
    return pl.Series(values, dtype=kind, strict=False).gather(of)


def _lists(alikes: Sequence[Alike]) -> pl.Series:
    """The integers of all lines as lists; null where a leaf is a text."""
    values = np.concatenate([alike.integers.ravel() for alike in alikes])
    text = np.concatenate([np.tile(_is_text(alike.template), len(alike.numbers)) for alike in alikes])
    sizes = np.concatenate([np.full(len(alike.numbers), alike.integers.shape[1]) for alike in alikes])
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    flat = pa.array(values, mask=text) if text.any() else pa.array(values)
    lists = pa.LargeListArray.from_arrays(pa.array(offsets), flat)
    return pl.Series(lists, dtype=pl.List(pl.Int64()))


def _is_text(template: Template) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    return np.array([leaf.integer is None for leaf in template.part.flattened.leaves], np.bool_)


def _named(read: pl.DataFrame, records: Ints, model: pl.Series, provider: str | None, api: str | None) -> pl.DataFrame:
    """Readings under the numbers of their records, with the names of who answered."""
    place = read["row"]
    nth = read["nth"].fill_null(0) if "nth" in read.columns else pl.repeat(0, read.height, dtype=pl.Int32, eager=True)
    asked = model.gather(place)
    return complete(
        read.drop("row", "nth", "child_model", strict=False).with_columns(
            pl.Series("record", records).gather(place),
            nth.alias("child"),
            provider=pl.lit(provider, dtype=pl.String),
            api=pl.lit(api, dtype=pl.String),
            model=pl.coalesce(read["child_model"], asked) if "child_model" in read.columns else asked,
        )
    )


def complete(frame: pl.DataFrame) -> pl.DataFrame:
    """A frame with all columns of readings; what it lacks is null."""
    return frame.select(
        pl.col(name).cast(kind) if name in frame.columns else pl.lit(None, dtype=kind).alias(name)
        for name, kind in SCHEMA.items()
    )


def one_by_one(told: Iterable[Told], read: Callable[[Mapping[str, object]], UsageReading] = read_usage) -> pl.DataFrame:
    """Readings of records that are read one by one, and a row for each line that cannot be."""
    rows: list[dict[str, object]] = []
    for number, record in told:
        if isinstance(record, QuarantineReason):
            rows.append({"record": number, "child": 0, "error": str(record)})
            continue
        reading = read(record)
        rows += [{"record": number, "child": nth, **_row(one)} for nth, one in enumerate((reading, *reading.children))]
    return pl.DataFrame(rows, schema=dict(SCHEMA))


def _row(reading: UsageReading) -> dict[str, object]:
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
