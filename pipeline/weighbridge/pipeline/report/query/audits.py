"""What the audit of the period says of every cell, the worst first."""

from __future__ import annotations

from decimal import Decimal

import polars as pl

from weighbridge.pipeline.audit.cell import CELL
from weighbridge.pipeline.audit.words import quiet
from weighbridge.pipeline.report.sheet import BLANK, Column, Kind, Row, Sheet
from weighbridge.pipeline.report.view import View
from weighbridge.schemas.enumerations import AuditVerdict, Grade

AUDITS = (
    Column("model", "Model"),
    Column("provider", "Provider"),
    Column("measure", "Measure", Kind.CODE),
    Column("grade", "Grade"),
    Column("verdict", "Verdict", Kind.BADGE),
    Column("cause", "Cause", Kind.CODE),
    Column("answers", "Answers", Kind.COUNT),
    Column("gap", "Gap, tokens", Kind.SIGNED),
    Column("rate_lower", "Mean gap, at least", Kind.CHANGE),
    Column("rate_upper", "at most", Kind.CHANGE),
    Column("pinned", "left out: at their limit", Kind.COUNT, sparse=True),
    Column("incomplete", "left out: incomplete", Kind.COUNT, sparse=True),
    Column("api", "API", page=False),
    Column("tokenizer", "Tokenizer", Kind.CODE, page=False),
    Column("template", "Template", Kind.CODE, page=False),
)
_READ = (*("day", *CELL, "verdict", "cause", "rows", "gap"), *("rate_lower", "rate_upper", "pinned", "incomplete"))
_RANK = {str(verdict): place for place, verdict in enumerate(reversed(AuditVerdict))}
_NOTE = (
    "The mean gap is that of gap / observed over the answers, each within -12.5 % and +12.5 %, and holds at every "
    "moment of the month at once. A cell is accused only where a bet against it was won at the promised rate, the gap "
    f"grows with the size of the answer, and the cell is calibrated. Of cells of grade G2 {quiet(Grade.G2)}; of grade "
    f"G4 {quiet(Grade.G4)}."
)


def audits(view: View) -> Sheet:
    """The last that was said of each cell and month of the period."""
    first, last = view.period.first, view.period.last
    rows = view.read("audit_cell", _READ).filter(pl.col("day").is_between(first, last), pl.col("verdict").is_not_null())
    latest = (
        rows.sort("day").group_by(*CELL, pl.col("day").dt.truncate("1mo").alias("month"), maintain_order=True).last()
    )
    ranked = latest.with_columns(rank=pl.col("verdict").replace_strict(_RANK, return_dtype=pl.Int64)).sort(
        "rank", pl.col("gap").abs(), *CELL, "month", descending=[False, True, *[False] * (len(CELL) + 1)]
    )
    return Sheet(
        name="audits",
        title="What may be said of providers",
        columns=AUDITS,
        rows=tuple(_row(row) for row in ranked.collect().iter_rows(named=True)),
        sources=("audit_cell",),
        empty="Nothing was audited in this period.",
        note=_NOTE,
    )


def _row(row: dict[str, object]) -> Row:
    named = {name: _text(row[name]) for name in ("model", "provider", "measure", "grade", "verdict", "api")}
    coded = {name: _text(row[name]) for name in ("cause", "tokenizer", "template")}
    counted = {"answers": row["rows"], **{name: row[name] for name in ("gap", "pinned", "incomplete")}}
    rates = {name: _exact(row[name]) for name in ("rate_lower", "rate_upper")}
    told = {**named, **coded, **counted, **rates}
    return tuple(told[column.name] for column in AUDITS)  # type: ignore[misc]


def _text(value: object) -> str:
    return BLANK if value is None else str(value)


def _exact(value: object) -> Decimal | None:
    """A rate of the grid, which has four places."""
    return Decimal(f"{value:.4f}") if isinstance(value, float) else None
