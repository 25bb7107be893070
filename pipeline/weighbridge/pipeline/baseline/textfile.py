"""How the baselines of the last judged day stand, as a file for the textfile collector of Prometheus.

The file is replaced in one step, so a collector never reads half of it. It has no tenant, task or model: figures by
measure and by driver are few, and whoever wants more opens the findings.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import StrEnum
from pathlib import Path

import polars as pl

from weighbridge.pipeline.baseline.usage import SERIES
from weighbridge.pipeline.lake.records import Records
from weighbridge.schemas.enumerations import BaselineMethod, Driver, Measure

COLUMNS_COUNTED = (
    *(*SERIES, "measure", "method", "p_value", "reported", "driver", "amount", "currency"),
    *("kept", "test_days", "test_alarms"),
)
_PREFIX = "weighbridge_baseline_"


def write_textfile(records: Records, path: Path) -> date | None:
    """Write the figures of the last judged day; the day, null where none was judged and nothing was written.

    Raises:
        OSError: the folder is not there, or cannot be written.
    """
    days = records.days("baseline")
    if not days:
        return None
    rows = records.scan("baseline", first=days[-1], last=days[-1], columns=list(COLUMNS_COUNTED)).collect()
    text = "".join(line + "\n" for line in metrics(rows, days[-1]))
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with draft.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.chmod(0o644)  # the collector runs as another user
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    return days[-1]


def metrics(rows: pl.DataFrame, day: date) -> Iterator[str]:
    """The lines of the file, in the text format of Prometheus.

    Args:
        rows: rows of `baseline` of one day, with `COLUMNS_COUNTED`.
        day: the day.
    """
    midnight = datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()
    declared = pl.col("method") == str(BaselineMethod.TASK_TABLE)
    hits = rows.filter(pl.col("reported") & ~declared)
    yield from _gauge("day_timestamp_seconds", "Start of the last judged UTC day.", [({}, format(int(midnight), "d"))])
    yield from _gauge("cells", "Cells with rows in the reference or on the day.", _counted(rows, "measure", Measure))
    yield from _gauge(
        "tested_cells", "Cells that were tested.", _counted(rows.drop_nulls("p_value"), "measure", Measure)
    )
    yield from _gauge("reported_cells", "Cells that were reported.", _counted(hits, "driver", Driver))
    yield from _gauge(
        "excess_cost",
        "Cost of what reported cells had more than expected, in the currency named.",
        [
            ({"driver": driver, "currency": currency}, _plain(amount))
            for driver, currency, amount in _costs(hits).iter_rows()
        ],
    )
    missed = rows.filter(pl.col("reported") & declared).height
    yield from _gauge("task_bands_missed", "Medians outside of the band declared for their task.", [({}, str(missed))])
    broken = rows.filter(~pl.col("kept").fill_null(value=True)).height
    yield from _gauge("promises_broken", "Cells of which the reference window broke the promise.", [({}, str(broken))])
    for name, text in (("test_days", "Days the promise was tested on."), ("test_alarms", "Of them, days beyond it.")):
        yield from _gauge(name, text, [({}, str(int(rows[name].sum())))])


def _costs(hits: pl.DataFrame) -> pl.DataFrame:
    """All classes of a direction carry the cost of the direction, so it counts once."""
    known = hits.drop_nulls("amount").unique([*SERIES, "driver", "amount", "currency"])
    return known.group_by("driver", "currency").agg(pl.col("amount").sum()).sort("driver", "currency")


def _counted(rows: pl.DataFrame, by: str, every: type[StrEnum]) -> list[tuple[Mapping[str, str], str]]:
    """How many rows each member has; none is told too, so that a figure never goes missing."""
    counts = dict(rows.group_by(by).len().iter_rows())
    return [({by: str(member)}, str(counts.get(str(member), 0))) for member in every]


def _gauge(name: str, text: str, values: Iterable[tuple[Mapping[str, str], str]]) -> Iterator[str]:
    yield f"# HELP {_PREFIX}{name} {text}"
    yield f"# TYPE {_PREFIX}{name} gauge"
    for labels, value in values:
        shown = ",".join(f'{label}="{word}"' for label, word in labels.items())
        yield f"{_PREFIX}{name}{{{shown}}} {value}" if shown else f"{_PREFIX}{name} {value}"


def _plain(amount: Decimal) -> str:
    return format(amount.normalize(), "f")
