"""Checks the report makes on itself: sums of different tables that must agree, or the page says that they do not."""

from __future__ import annotations

from decimal import Decimal

import polars as pl

from weighbridge.pipeline.report.exact import added, tokens
from weighbridge.pipeline.report.query.classes import class_money, token_classes
from weighbridge.pipeline.report.query.gaps import REPORTED, RESIDUAL, reconciled, waterfall
from weighbridge.pipeline.report.query.quality import segments
from weighbridge.pipeline.report.query.totals import amounts, totals
from weighbridge.pipeline.report.sheet import Column, Kind, Row, Sheet
from weighbridge.pipeline.report.view import View

CHECKS = (
    Column("check", "Check"),
    Column("left", "One side", Kind.DECIMAL),
    Column("right", "Other side", Kind.DECIMAL),
    Column("difference", "Difference", Kind.DECIMAL),
    Column("outcome", "Outcome", Kind.BADGE),
)
HOLDS, FAILS, OPEN = "holds", "differs", "not possible"


def checks(view: View) -> Sheet:
    """Sums that must agree, worked out from different tables."""
    rows: list[Row] = []
    files, flow, kinds = view.get(segments), view.get(waterfall), view.get(token_classes)
    put = sum(int(str(files.foot(name).value or 0)) for name in ("rows_out", "rows_quarantined", "rows_duplicate"))
    rows.append(_check("records in = stored + quarantined + held already", files.foot("rows_in").value or 0, put))
    for direction in ("input", "output"):
        if flow.row(direction=direction, step=REPORTED):
            ends = [flow.figure("tokens", direction=direction, step=step).value for step in (RESIDUAL, REPORTED)]
            rows.append(_check(f"{direction}: observed + causes + residual = reported", *ends))
        total = view.get(totals).figure(direction, measure="reported").value
        frame = view.get(reconciled).filter(pl.col("direction") == direction)
        again = frame.select(tokens("reported")).item() if frame.height else None
        rows.append(_check(f"{direction}: reported by readings = reported in the reconciliation", total, again))
        names = [column.name for column in kinds.columns if column.adds and _side(column.name) == direction]
        parts = added([kinds.foot(name).value for name in names])
        rows.append(_check(f"{direction}: reported = its classes + split unknown", total, parts))
    money = view.get(class_money)
    for currency in view.get(amounts).cells("currency"):
        whole = view.get(amounts).figure("amount", currency=currency).value
        parts = added([row[money.index("amount")] for row in money.rows if row[money.index("currency")] == currency])
        rows.append(_check(f"{currency}: amount = the amounts of its classes", whole, parts))
    return Sheet(
        name="checks",
        title="Checks this report makes on itself",
        columns=CHECKS,
        rows=tuple(rows),
        sources=("segment", "reading", "reconciled", "gap_cause", "priced_amount"),
        empty="No checks.",
    )


def _side(name: str) -> str:
    if name == "reports":
        return ""
    return "output" if name in {"output_visible", "reasoning", "output_split_unknown"} else "input"


def _check(name: str, left: object, right: object) -> Row:
    if not isinstance(left, int | Decimal) or not isinstance(right, int | Decimal):
        return (name, None, None, None, OPEN)
    difference = added([left, -right])
    return (name, left, right, difference, HOLDS if not difference else FAILS)
