"""The audit of a night: every cell goes on from where it stood, and what its month comes to is said.

A month is a process of its own: its bets begin with one unit of money. What is promised is that an honest cell is
accused in a month with a probability of at most alpha, however often it was looked at.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import groupby
from typing import Any

import polars as pl

from weighbridge.pipeline.audit import grain
from weighbridge.pipeline.audit.calibrate import Calibration, calibrations, held_to
from weighbridge.pipeline.audit.cell import CELL, Cell
from weighbridge.pipeline.audit.found import Outcome, findings, of_grain
from weighbridge.pipeline.audit.judge import outcomes, weighed
from weighbridge.pipeline.audit.rows import Answers, answers_of, batches
from weighbridge.pipeline.audit.standing import LENGTH, CellMonth
from weighbridge.pipeline.audit.verdict import threshold
from weighbridge.pipeline.lake.found import write_findings
from weighbridge.pipeline.lake.lake import Lake
from weighbridge.pipeline.lake.records import Records
from weighbridge.pipeline.lake.shape import complete, empty, polars_schema
from weighbridge.schemas.enumerations import FindingOrigin
from weighbridge.schemas.finding import Finding

TABLE = "audit_cell"
ALPHA = 0.01
_SAID = ("verdict", "cause", "slope", "slope_lower", "slope_upper")


@dataclass(frozen=True, slots=True)
class AuditResult:
    """What a run did.

    Attributes:
        months: the UTC months that were audited, in order.
        outcomes: month -> what is said of each cell, in the order of the cells.
        findings: of these months.
    """

    months: tuple[str, ...]
    outcomes: Mapping[str, tuple[Outcome, ...]]
    findings: tuple[Finding, ...]


def audit(lake: Lake, *, days: Collection[date], alpha: float = ALPHA) -> AuditResult:
    """Audit these days and those of their months that come after them; write `audit_cell` and findings.

    A day goes on from the one before it; days that come out as they were are not written.

    Args:
        lake: where the tables lie; it has to be reconciled.
        days: UTC days, in any order.
        alpha: promised chance that an honest cell is accused in a month.

    Raises:
        ConfigError: alpha is too small, or no probability.
        LakeBusyError: another process is writing.
    """
    threshold(alpha)
    told: dict[str, tuple[Outcome, ...]] = {}
    found: list[Finding] = []
    with lake.lock():
        known = calibrations(lake)
        for month, own in groupby(sorted(set(days)), key=lambda day: f"{day:%Y-%m}"):
            told[month] = tuple(_month(lake, month, min(own), known, alpha))
            found += [*findings(told[month], month), *_grains(lake, month)]
        write_findings(lake, found, origin=FindingOrigin.AUDIT, periods=tuple(told))
    return AuditResult(tuple(told), told, tuple(found))


def _month(lake: Lake, month: str, first: date, known: Mapping[Cell, Calibration], alpha: float) -> list[Outcome]:
    """Go on with a month from the day `first`."""
    reconciled = [day for day in lake.days("reconciled") if f"{day:%Y-%m}" == month]
    stale = [day for day in lake.days(TABLE) if f"{day:%Y-%m}" == month and day >= first]
    days = [day for day in reconciled if day >= first]
    cells = _stood(lake, month, first)
    frames: list[pl.DataFrame] = []
    for batch in batches(lake, days):
        answers = _audited(answers_of(lake, batch), known)
        for day in batch:
            touched = _day(answers, day, cells, known)
            frames.append(_frame(day, {cell: cells[cell] for cell in touched}, known, alpha))
    rows = pl.concat(frames) if frames else empty(TABLE)
    said = {each.cell: each for each in outcomes(lake, reconciled, cells, known, alpha)}
    last = rows.group_by(CELL).agg(last=pl.col("day").max()) if rows.height else None
    if last is not None:
        rows = _with_verdicts(rows.join(last, on=CELL, how="left", nulls_equal=True), said)
    before = _unsaid(lake, month, first, rows)
    written = sorted({*stale, *days, *before["day"].unique()})
    lake.replace(TABLE, pl.concat([before, complete(TABLE, rows)]), days=written)
    return list(said.values())


def _unsaid(lake: Records, month: str, first: date, rows: pl.DataFrame) -> pl.DataFrame:
    """The rows of days before `first` on which something was said of cells that go on: a later day says it now."""
    begin = date.fromisoformat(f"{month}-01")
    earlier = lake.scan(TABLE, first=begin, last=first).filter(pl.col("day") < first).collect()
    goes_on = earlier.select(CELL).join(
        rows.select(CELL).unique().with_columns(on=True), on=CELL, how="left", nulls_equal=True, maintain_order="left"
    )
    old = goes_on["on"].fill_null(value=False) & earlier["verdict"].is_not_null()
    emptied = earlier.with_columns(pl.when(~old).then(pl.col(name)).alias(name) for name in _SAID)
    return emptied.filter(pl.col("day").is_in(earlier.filter(old)["day"].unique().implode()))


def _stood(lake: Records, month: str, first: date) -> dict[Cell, CellMonth]:
    """Where the cells of a month stood before a day. It is the same whatever alpha is asked."""
    begin = date.fromisoformat(f"{month}-01")
    rows = lake.scan(TABLE, first=begin, last=first).filter(pl.col("day") < first)
    latest = rows.sort("day").group_by(CELL, maintain_order=True).last().collect()
    usable = [row for row in latest.iter_rows(named=True) if len(row["state"]) == LENGTH]
    return {Cell.of(row): CellMonth.of(row) for row in usable}


def _audited(answers: Answers, known: Mapping[Cell, Calibration]) -> Answers:
    """Without those that cells were calibrated with."""

    def others(rows: pl.DataFrame) -> pl.DataFrame:
        own = rows.partition_by(CELL, maintain_order=True)
        kept = [each.filter(~held_to(Cell.of(each.row(0, named=True)), known).covered()) for each in own]
        return pl.concat(kept) if kept else rows

    return Answers(others(answers.rows), others(answers.left_out))


def _day(answers: Answers, day: date, cells: dict[Cell, CellMonth], known: Mapping[Cell, Calibration]) -> list[Cell]:
    """Let every cell that has answers on a day go on; which these are, in order."""
    touched: set[Cell] = set()
    for row in answers.left_out.filter(pl.col("day") == day).iter_rows(named=True):
        cell = Cell.of(row)
        touched.add(cell)
        cells[cell] = cells.get(cell, CellMonth.start()).without(row["pinned"], row["incomplete"])
    for rows in answers.rows.filter(pl.col("day") == day).partition_by(CELL, maintain_order=True):
        cell = Cell.of(rows.row(0, named=True))
        calibration = held_to(cell, known)
        own = weighed(cell, rows, calibration)
        if own is not None:
            cells[cell] = cells[cell].further(own.gaps, own.sizes, calibration.tolerance)
    return sorted(touched, key=_order)


def _order(cell: Cell) -> tuple[tuple[bool, str], ...]:
    return tuple((value is not None, value or "") for value in cell)


def _frame(day: date, cells: Mapping[Cell, CellMonth], known: Mapping[Cell, Calibration], alpha: float) -> pl.DataFrame:
    rows: Sequence[dict[str, Any]] = [
        {
            "day": day,
            **cell._asdict(),
            **month.row(alpha),
            "calibrated": known[cell].tolerance.rows if cell in known else None,
        }
        for cell, month in cells.items()
    ]
    return pl.DataFrame(rows, schema=polars_schema(TABLE))


def _with_verdicts(rows: pl.DataFrame, said: Mapping[Cell, Outcome]) -> pl.DataFrame:
    """The rows, the last one of each cell with what is said of it."""
    told = []
    for row in rows.select(*CELL, "day", "last").iter_rows(named=True):
        judged = said[Cell.of(row)].judged if row["day"] == row["last"] else None
        told.append(
            {
                "verdict": None if judged is None else str(judged.verdict),
                "cause": None if judged is None or judged.label is None else judged.label.code,
                "slope": None if judged is None else judged.slope,
                "slope_lower": None if judged is None else judged.lower,
                "slope_upper": None if judged is None else judged.upper,
            }
        )
    kinds = {name: polars_schema(TABLE)[name] for name in _SAID}
    return rows.drop("last", *_SAID).hstack(pl.DataFrame(told, schema=kinds))


def _grains(lake: Records, month: str) -> list[Finding]:
    begin = date.fromisoformat(f"{month}-01")
    wanted = ["provider", "model", "day", "attempt_hi", "attempt_lo", "cache_read", "reasoning"]
    readings = lake.scan("reading", first=begin, columns=wanted).filter(pl.col("day").dt.strftime("%Y-%m") == month)
    return [of_grain(row, month) for row in grain.broken(readings).iter_rows(named=True)]
