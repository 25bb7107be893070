"""What may leave this room: numbers about token runs, never ids.

One row per attempt, child and stream: how many ids there are and how many distinct ones, how many of their 4-grams
repeat an earlier one (the repetition measure rep-4), and whether they are as many as the engine counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date

import numpy as np
import polars as pl

from weighbridge.pipeline.content.blocks import TABLE, Ids, Reader, open_day
from weighbridge.pipeline.lake import Lake
from weighbridge.schemas.enumerations import RunStream

GRAM = 4
_KEY = ("source", "attempt_hi", "attempt_lo", "child", "stream")
SCHEMA: Mapping[str, pl.DataType] = {
    "day": pl.Date(),
    "source": pl.String(),
    "attempt_hi": pl.Int64(),
    "attempt_lo": pl.Int64(),
    "child": pl.Int32(),
    "stream": pl.String(),
    "ids": pl.Int64(),  # ids the runs state
    "opened": pl.Int64(),  # of those, ids that could be read
    "distinct": pl.Int64(),
    "grams": pl.Int64(),  # 4-grams
    "repeated": pl.Int64(),  # of those, that repeat an earlier one of the same stream
    "expected": pl.Int64(),  # ids the engine counted, null where it did not say
    "met": pl.Boolean(),  # for output: with the ids of its reasoning
}


def run_metrics(lake: Lake, keys: Reader, *, first: date | None = None, last: date | None = None) -> pl.DataFrame:
    """Measure the token runs of some days.

    Args:
        lake: the lake.
        keys: the provider the ids were encrypted with.
        first, last: UTC days, both included; null is open.

    Returns:
        Columns as in `SCHEMA`, sorted by day and key. Where not all ids of a stream open, `distinct`, `grams` and
        `repeated` are null.

    Raises:
        CipherMissingError: the package that decrypts is not installed.
    """
    days = [day for day in lake.days(TABLE) if (first is None or day >= first) and (last is None or day <= last)]
    frames = [_of_day(lake, keys, day) for day in days]
    return pl.concat([pl.DataFrame(schema=SCHEMA), *frames]).sort("day", *_KEY)


def summed(found: pl.DataFrame) -> pl.DataFrame:
    """The metrics of all attempts together, by source and stream.

    Returns:
        source, stream, streams (how many), ids, opened; of those of which all ids opened: whole (how many), distinct
        (of each one, added), grams, repeated; met and unmet: as many ids as the engine counted, and not as many.
    """
    whole = pl.col("distinct").is_not_null()
    return (
        found.group_by("source", "stream")
        .agg(
            streams=pl.len().cast(pl.Int64),
            ids=pl.col("ids").sum(),
            opened=pl.col("opened").sum(),
            whole=whole.sum().cast(pl.Int64),
            distinct=pl.col("distinct").sum(),
            grams=pl.col("grams").sum(),
            repeated=pl.col("repeated").sum(),
            met=pl.col("met").fill_null(value=False).sum().cast(pl.Int64),
            unmet=(~pl.col("met")).fill_null(value=False).sum().cast(pl.Int64),
        )
        .sort("source", "stream")
    )


def _of_day(lake: Lake, keys: Reader, day: date) -> pl.DataFrame:
    streams: dict[tuple[object, ...], list[tuple[int, int, Ids | None]]] = {}
    rows = lake.scan(TABLE, first=day, last=day).collect()
    for block in open_day(rows, keys):
        about = block.rows.select(*_KEY, "start", "length", "block_offset")
        for *key, start, length, offset in about.iter_rows():
            ids = block.ids[offset : offset + length] if block.shut is None else None
            streams.setdefault(tuple(key), []).append((start, length, ids))
    found = pl.DataFrame(
        [(day, *key, *_measured(runs)) for key, runs in streams.items()],
        schema={name: kind for name, kind in SCHEMA.items() if name not in ("expected", "met")},
        orient="row",
    )
    # The engine's count of the output includes reasoning, which is a stream of its own.
    made = pl.col("stream").is_in([str(RunStream.OUTPUT), str(RunStream.REASONING)])
    all_made = pl.col("ids").filter(made).sum().over("source", "attempt_hi", "attempt_lo", "child")
    counted = pl.when(pl.col("stream") == str(RunStream.OUTPUT)).then(all_made).otherwise("ids")
    return (
        found.join(_expected(lake, day), on=_KEY, how="left")
        .with_columns(met=counted == pl.col("expected"))
        .select(list(SCHEMA))
    )


def _measured(runs: list[tuple[int, int, Ids | None]]) -> tuple[int, int, int | None, int | None, int | None]:
    """ids, opened, distinct, grams, repeated of one stream; its runs are put in the order of their starts."""
    stated = sum(length for _, length, _ in runs)
    parts = [ids for _, _, ids in sorted(runs, key=lambda run: run[0]) if ids is not None]
    opened = sum(len(part) for part in parts)
    if opened < stated or not parts:
        return stated, opened, None, None, None
    ids = np.concatenate(parts)
    grams = max(0, len(ids) - GRAM + 1)
    return stated, opened, len(np.unique(ids)), grams, grams - _distinct_grams(ids)


def _distinct_grams(ids: Ids) -> int:
    if len(ids) < GRAM:
        return 0
    windows = np.ascontiguousarray(np.lib.stride_tricks.sliding_window_view(ids, GRAM))
    return len(np.unique(windows.view(f"V{4 * GRAM}")))


def _expected(lake: Lake, day: date) -> pl.DataFrame:
    """How many ids of the prompt and of the output the engine counted for each attempt, where it said so."""
    attempts = lake.scan("attempt", first=day, last=day, columns=["source", "attempt_hi", "attempt_lo", "revision",
                                                                  "input_computed", "output_computed"])  # fmt: skip
    last = attempts.sort("revision").unique(["source", "attempt_hi", "attempt_lo"], keep="last")
    sides = [
        last.select(
            "source", "attempt_hi", "attempt_lo", child=pl.lit(0, dtype=pl.Int32), stream=pl.lit(str(stream)),
            expected=pl.col(column),
        )
        for stream, column in ((RunStream.PROMPT, "input_computed"), (RunStream.OUTPUT, "output_computed"))
    ]  # fmt: skip
    return pl.concat(sides).collect()
