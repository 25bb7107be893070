"""The attempts of a stretch of days as columns of small integers, so that ten million of them fit in memory.

Tokens are measured on y = log(1 + tokens), kept as whole multiples of 2**-20 (one part in a million of the tokens).
Sums, medians and order statistics of whole numbers are exact, so the same rows give the same bytes in any order.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from weighbridge.pipeline.baseline.usage import BETWEEN, COUNTS, KEY, SERIES, TOTALS, attempts_with_usage
from weighbridge.pipeline.lake.records import Records
from weighbridge.schemas.lattice import REPORTED_CLASSES

Ints = NDArray[np.int64]
Small = NDArray[np.int32]
Mask = NDArray[np.bool_]

SCALE = 2**20
UNKNOWN = -1  # no figure of tokens; every known one is 0 or more
NO_HOUR = 255
HOURS = 168


@dataclass(frozen=True, slots=True)
class Rows:
    """First tries that have usage, in the order of days; every array has one item per attempt.

    Attributes:
        series: index of its series.
        day: days since the first day of the history.
        hour: hour of the UTC week from Monday, NO_HOUR where the time is not known.
        y: class (and total of a direction) -> log(1 + tokens) in units of 1 / SCALE, UNKNOWN where not known.
    """

    series: Small
    day: NDArray[np.int16]
    hour: NDArray[np.uint8]
    y: dict[str, Small]


@dataclass(frozen=True)
class History:
    """What the lake knows of some days.

    Attributes:
        first: its first day.
        length: how many days it has.
        labels: the columns of `SERIES`; the row number is the index of the series. Sorted, so that it is canonical.
        rows: first tries that have usage.
        facts: per series and day: attempts, requests, tries (attempts with a number), retries; of the first tries per
            count n_ and x_ (rows that have it, their tokens), and per class y_ (the sum of their y).
        judged: of the judged days every attempt: series, day (index), attempt_lo, attempt_hi, retry, hour, `COUNTS`.
        classes: the token classes of which any attempt has any tokens.
    """

    first: date
    length: int
    labels: pl.DataFrame
    rows: Rows
    facts: pl.DataFrame
    judged: pl.DataFrame
    classes: tuple[str, ...]

    def index(self, day: date) -> int:
        """The number of a day."""
        return (day - self.first).days

    @property
    def series(self) -> int:
        """How many series there are."""
        return self.labels.height

    @cached_property
    def grid(self) -> dict[str, Ints]:
        """The facts as arrays of series x day; 0 where there are no rows."""
        at = self.facts["series"].to_numpy(), self.facts["day"].to_numpy()
        out = {}
        for name in self.facts.columns[2:]:
            out[name] = np.zeros((self.series, self.length), np.int64)
            out[name][at] = self.facts[name].to_numpy()
        return out


def read_history(
    records: Records, first: date, last: date, judged: Collection[date], tasks: Collection[str] = ()
) -> History:
    """Read these UTC days.

    Args:
        records: tables `attempt` and `reading`.
        first, last: both inclusive.
        judged: of these days the attempts are kept one by one.
        tasks: of these tasks the totals of each direction are kept for every row, of the others only their sums.
    """
    facts, details, columns = [], [], []
    for part in attempts_with_usage(records, first, last):
        frame = _measured(part, first)
        facts.append(_facts(frame))
        wanted = [(day - first).days for day in judged]
        details.append(frame.filter(pl.col("day").is_in(wanted)).drop(f"y_{name}" for name in COUNTS))
        columns.append(_columns(frame, tasks))
    summed = _together(facts)
    labels, places = _labels(summed["series"])
    detail = pl.concat(details) if details else _nothing()
    return History(
        first=first,
        length=(last - first).days + 1,
        labels=labels,
        rows=_rows(columns, places),
        facts=_placed(summed, places).sort("series", "day"),
        judged=_placed(detail, places).sort("series", "day", *KEY),
        classes=tuple(name for name in REPORTED_CLASSES if summed[f"x_{name}"].sum()),
    )


def _measured(part: pl.DataFrame, first: date) -> pl.DataFrame:
    number = pl.col("attempt_number")
    logs = [(pl.col(name).log1p() * SCALE).round().cast(pl.Int32).alias(f"y_{name}") for name in COUNTS]
    return part.select(
        *KEY,
        "series",
        (pl.col("day") - pl.lit(first)).dt.total_days().cast(pl.Int16).alias("day"),
        number.is_not_null().alias("numbered"),
        (number > 1).fill_null(value=False).alias("retry"),
        pl.col("hour").fill_null(NO_HOUR),
        *COUNTS,
        *logs,
    )


def _facts(frame: pl.DataFrame) -> pl.DataFrame:
    """Per series and day: all attempts, and the sums of the first tries."""
    by = ["series", "day"]
    whole = [pl.len().cast(pl.Int64).alias("attempts")]
    whole += [pl.col(name).sum().cast(pl.Int64).alias(of) for name, of in (("numbered", "tries"), ("retry", "retries"))]
    sums = [pl.col(name).count().cast(pl.Int64).alias(f"n_{name}") for name in COUNTS]
    sums += [pl.col(name).sum().alias(f"x_{name}") for name in COUNTS]
    sums += [pl.col(f"y_{name}").cast(pl.Int64).sum() for name in REPORTED_CLASSES]
    every = frame.lazy().group_by(by).agg(whole)
    first = frame.lazy().filter(~pl.col("retry")).group_by(by).agg(sums)
    joined = every.join(first, on=by, how="left").with_columns(requests=pl.col("attempts") - pl.col("retries"))
    return joined.with_columns(pl.exclude(by).fill_null(0)).collect(engine="streaming")


def _together(facts: Sequence[pl.DataFrame]) -> pl.DataFrame:
    if not facts:
        return _facts(_nothing())
    return pl.concat(facts).group_by("series", "day").agg(pl.all().sum())


def _columns(frame: pl.DataFrame, tasks: Collection[str]) -> dict[str, NDArray[np.generic]]:
    """The arrays of the first tries that have usage."""
    counted = pl.any_horizontal(pl.col(f"y_{name}").is_not_null() for name in COUNTS)
    first = frame.lazy().filter(~pl.col("retry") & counted)
    kinds = frame["series"].unique()
    of_task = kinds.cast(pl.String).str.split(BETWEEN).list.get(SERIES.index("task")).is_in(list(tasks))
    wanted = pl.col("series").to_physical().is_in(kinds.to_physical().filter(of_task).to_list())
    logs = [pl.col(f"y_{name}").fill_null(UNKNOWN) for name in REPORTED_CLASSES]
    logs += [pl.when(wanted).then(f"y_{name}").otherwise(None).fill_null(UNKNOWN).alias(f"y_{name}") for name in TOTALS]
    held = first.select(pl.col("series").to_physical(), "day", "hour", *logs).collect(engine="streaming")
    return {name: held[name].to_numpy() for name in held.columns}


def _labels(series: pl.Series) -> tuple[pl.DataFrame, Ints]:
    """The series in the order of their names, and the place of each physical code among them."""
    codes = series.unique()
    frame = pl.DataFrame({"code": codes.to_physical(), "label": codes.cast(pl.String)}).sort("label")
    places = np.full(int(frame["code"].max() or 0) + 1, -1, np.int64)  # type: ignore[arg-type]
    places[frame["code"].to_numpy()] = np.arange(frame.height)
    parts = frame["label"].str.split(BETWEEN)
    names = {name: parts.list.get(place, null_on_oob=True) for place, name in enumerate(SERIES)}
    labels = pl.DataFrame(names, schema=dict.fromkeys(SERIES, pl.String))
    return labels.with_columns(pl.when(pl.col(name) != "").then(name).alias(name) for name in SERIES), places


def _placed(frame: pl.DataFrame, places: Ints) -> pl.DataFrame:
    index = places[frame["series"].to_physical().to_numpy()] if frame.height else np.empty(0, np.int64)
    return frame.with_columns(pl.Series("series", index, pl.Int64))


def _rows(columns: list[dict[str, NDArray[np.generic]]], places: Ints) -> Rows:
    def whole(name: str, kind: type[np.generic]) -> NDArray[np.generic]:
        parts = [held.pop(name) for held in columns]
        return np.concatenate(parts) if parts else np.empty(0, kind)

    day = whole("day", np.int16).astype(np.int16, copy=False)
    # What was met late stands at the end of what was read.
    order = None if (day[1:] >= day[:-1]).all() else np.argsort(day, kind="stable")

    def column(name: str, kind: type[np.generic]) -> NDArray[Any]:
        values = whole(name, kind).astype(kind, copy=False)
        return values if order is None else values[order]

    codes = column("series", np.uint32)
    return Rows(
        series=places.astype(np.int32)[codes] if len(codes) else np.empty(0, np.int32),
        day=day if order is None else day[order],
        hour=column("hour", np.uint8),
        y={name: column(f"y_{name}", np.int32) for name in COUNTS},
    )


def _nothing() -> pl.DataFrame:
    kinds = dict.fromkeys(COUNTS, pl.Int64) | {f"y_{name}": pl.Int32 for name in COUNTS}
    schema = {"attempt_lo": pl.Int64, "attempt_hi": pl.Int64, "series": pl.Categorical, "day": pl.Int16}
    flags = {"numbered": pl.Boolean, "retry": pl.Boolean, "hour": pl.UInt8}
    return pl.DataFrame(schema={**schema, **flags, **kinds})
