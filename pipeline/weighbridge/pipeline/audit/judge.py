"""What the cells of a month come to: those of which anything may be said are read again, with all their evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date

import numpy as np
import polars as pl

from weighbridge.pipeline.audit.calibrate import Calibration, held_to
from weighbridge.pipeline.audit.cell import CELL, Cell
from weighbridge.pipeline.audit.found import Outcome
from weighbridge.pipeline.audit.money import at_stake
from weighbridge.pipeline.audit.rows import EVIDENCE, answers_of, batches, in_order
from weighbridge.pipeline.audit.standing import CellMonth
from weighbridge.pipeline.audit.verdict import DECIDED, Judged, identity, judged, threshold
from weighbridge.pipeline.audit.weighings import Weighings, predicted
from weighbridge.pipeline.lake.lake import Lake
from weighbridge.schemas.enumerations import AuditMeasure, AuditVerdict
from weighbridge.schemas.finding import EVIDENCE_ROWS
from weighbridge.schemas.identity import AttemptKey


def weighed(cell: Cell, rows: pl.DataFrame, calibration: Calibration) -> Weighings | None:
    """The answers of a cell; null where they are held against a prediction that nothing taught.

    Args:
        cell: whose they are.
        rows: of `rows.answers_of`.
        calibration: what the cell is held to.
    """
    gaps, sizes = (rows[name].to_numpy().astype(np.int64) for name in ("gap", "size"))
    if cell.is_predicted:
        if calibration.ratio is None:
            return None
        sizes = predicted(sizes, calibration.ratio)
        gaps = gaps - sizes
    evidence = {name: rows[name].to_numpy().astype(np.int64) for name in EVIDENCE}
    return Weighings.of(AuditMeasure(cell.measure), gaps, sizes, **evidence)


def flagged(cell: Cell, month: CellMonth, alpha: float) -> bool:
    """Whether its answers have to be looked at."""
    if cell.is_identity:
        return month.broken > 0
    return max(month.over, month.under) >= threshold(alpha)


def outcomes(
    lake: Lake,
    days: Sequence[date],
    cells: Mapping[Cell, CellMonth],
    known: Mapping[Cell, Calibration],
    alpha: float,
) -> list[Outcome]:
    """What is said of every cell of a month.

    Args:
        lake: where its answers lie.
        days: the days of the month that have any.
        cells: where they stand.
        known: what cells are held to.
        alpha: promised chance of a false accusation.
    """
    wanted = [cell for cell, month in cells.items() if flagged(cell, month, alpha)]
    again = _again(lake, days, wanted, known) if wanted else {}
    out = []
    for cell, month in cells.items():
        calibration = held_to(cell, known)
        rows = again.get(cell)
        own = None if rows is None else weighed(cell, rows, calibration)
        if own is None or rows is None:
            out.append(_outcome(cell, month, _quiet(cell, month, calibration)))
            continue
        if cell.is_identity:
            said = identity(own, alpha)
        else:
            said = judged(own, calibration.tolerance, month.over, month.under, alpha)
        out.append(_told(lake, cell, month, said, rows, own))
    return out


def _again(
    lake: Lake, days: Sequence[date], wanted: Sequence[Cell], known: Mapping[Cell, Calibration]
) -> dict[Cell, pl.DataFrame]:
    """The answers of these cells on all of these days, without those that they were calibrated with."""
    asked = pl.DataFrame(wanted, schema=dict.fromkeys(CELL, pl.String()), orient="row")
    found: dict[Cell, list[pl.DataFrame]] = {}
    for batch in batches(lake, days):
        rows = answers_of(lake, batch).rows.join(asked, on=CELL, how="semi", nulls_equal=True)
        for own in rows.partition_by(CELL, maintain_order=True):
            cell = Cell.of(own.row(0, named=True))
            found.setdefault(cell, []).append(own.filter(~held_to(cell, known).covered()))
    return {cell: in_order(pl.concat(frames)) for cell, frames in found.items()}


def _quiet(cell: Cell, month: CellMonth, calibration: Calibration) -> Judged:
    rows = int(month.standing.rows)
    if not cell.is_identity and not calibration.tolerance.calibrated:
        return Judged(AuditVerdict.NOT_CALIBRATED)
    enough = rows > 0 if cell.is_identity else rows >= DECIDED
    return Judged(AuditVerdict.CLEAN if enough else AuditVerdict.UNDECIDED)


def _outcome(cell: Cell, month: CellMonth, said: Judged) -> Outcome:
    return Outcome(cell, said, int(month.standing.rows), month.broken, month.observed, month.gap, month.rate)


def _told(lake: Lake, cell: Cell, month: CellMonth, said: Judged, rows: pl.DataFrame, own: Weighings) -> Outcome:
    """With days, the answers with the largest gaps, and what the gaps cost."""
    order = np.lexsort((np.arange(own.rows), -said.side * own.gaps))[:EVIDENCE_ROWS]
    keys = rows.select("attempt_hi", "attempt_lo").rows()
    amount, currency = at_stake(lake, cell, rows.with_columns(gap=pl.Series(own.gaps)))
    return Outcome(
        cell,
        said,
        own.rows,
        month.broken,
        month.observed,
        month.gap,
        month.rate,
        rows["day"].min(),  # type: ignore[arg-type]
        rows["day"].max(),  # type: ignore[arg-type]
        tuple(sorted(AttemptKey(*keys[place]).to_hex() for place in order if own.gaps[place] != 0)),
        amount,
        currency,
    )
