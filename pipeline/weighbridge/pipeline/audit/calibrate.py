"""Learning what is tolerated, from days on which a cell is taken to be honest, and keeping it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

import numpy as np
import polars as pl

from weighbridge.pipeline.audit.cell import CELL, Cell
from weighbridge.pipeline.audit.rows import answers_of, batches
from weighbridge.pipeline.audit.tolerance import LEAST_ROWS, Tolerance, learnt, nothing_tolerated
from weighbridge.pipeline.audit.weighings import predicted
from weighbridge.pipeline.lake.lake import Lake
from weighbridge.pipeline.lake.records import Records
from weighbridge.pipeline.lake.shape import polars_schema
from weighbridge.schemas.errors import ConfigError

TABLE = "audit_tolerance"


@dataclass(frozen=True, slots=True)
class Calibration:
    """What a cell is held to.

    Attributes:
        tolerance: what is tolerated.
        first_day, last_day: what it was learnt from; null where it never was.
        ratio: hidden reasoning: reasoning tokens per visible one.
    """

    tolerance: Tolerance
    first_day: date | None = None
    last_day: date | None = None
    ratio: float | None = None

    def covered(self) -> pl.Expr:
        """Whether it was learnt from the day of a row, which therefore is not audited."""
        if self.first_day is None or self.last_day is None:
            return pl.lit(value=False)
        return pl.col("day").is_between(self.first_day, self.last_day)


def calibrate(lake: Lake, first: date, last: date) -> dict[Cell, Calibration]:
    """Learn and keep the tolerance of every cell with at least `LEAST_ROWS` answers in these days.

    Whoever calls this says that the provider was honest then, and that traffic was as it will be. Of other cells, what
    was learnt before stays.

    Args:
        lake: where the tables lie; it has to be reconciled.
        first, last: UTC days, both inclusive.

    Raises:
        ConfigError: the range ends before it begins, or no cell has enough answers in it.
        LakeBusyError: another process is writing.
    """
    if last < first:
        raise ConfigError(
            f"the calibration ends on {last}, before it begins on {first}; give the first day, then the last"
        )
    with lake.lock():
        days = [day for day in lake.days("reconciled") if first <= day <= last]
        found = _learnt(lake, days) if days else {}
        if not found:
            raise ConfigError(
                f"no cell has {LEAST_ROWS} answers that were compared from {first} to {last}; take more days, or "
                "reconcile them first (`weighbridge reconcile`)"
            )
        rows = [_row(cell, each) for cell, each in found.items()]
        others = [_row(cell, each) for cell, each in calibrations(lake).items() if cell not in found]
        table = pl.DataFrame([*rows, *others], schema=polars_schema(TABLE))
        lake.replace(TABLE, table.sort(CELL, nulls_last=False), days=None)
    return found


def calibrations(lake: Records) -> dict[Cell, Calibration]:
    """What is kept, by cell."""
    rows = lake.scan(TABLE).collect().iter_rows(named=True)
    return {
        Cell.of(row): Calibration(
            Tolerance(
                row["rows"],
                np.array(row["over"]),
                np.array(row["under"]),
                np.float64(row["steepest"]) + np.zeros(()),
                np.float64(row["flattest"]) + np.zeros(()),
                np.float64(row["variance"]) + np.zeros(()),
            ),
            row["first_day"],
            row["last_day"],
            row["ratio"],
        )
        for row in rows
    }


def held_to(cell: Cell, known: Mapping[Cell, Calibration]) -> Calibration:
    """What a cell is held to: of an identity, and of one that was never calibrated, nothing is tolerated."""
    if cell.is_identity or cell not in known:
        return Calibration(nothing_tolerated())
    return known[cell]


def _learnt(lake: Lake, days: list[date]) -> dict[Cell, Calibration]:
    found = {}
    every = pl.concat([answers_of(lake, batch).rows for batch in batches(lake, days)])
    for rows in every.partition_by(CELL, maintain_order=True):
        cell = Cell.of(rows.row(0, named=True))
        if rows.height < LEAST_ROWS or cell.is_identity:
            continue
        gaps, sizes = (rows[name].to_numpy().astype(np.int64) for name in ("gap", "size"))
        ratio = None
        if cell.is_predicted:
            ratio = float(gaps.sum() / max(int(sizes.sum()), 1))
            sizes = predicted(sizes, ratio)
            gaps = gaps - sizes
        found[cell] = Calibration(learnt(gaps, sizes), rows["day"].min(), rows["day"].max(), ratio)  # type: ignore[arg-type]
    return found


def _row(cell: Cell, learnt_of: Calibration) -> dict[str, object]:
    held = learnt_of.tolerance
    return {
        **cell._asdict(),
        "first_day": learnt_of.first_day,
        "last_day": learnt_of.last_day,
        "rows": held.rows,
        "over": held.over.tolist(),
        "under": held.under.tolist(),
        "steepest": float(held.steepest),
        "flattest": float(held.flattest),
        "variance": float(held.variance),
        "ratio": learnt_of.ratio,
    }
