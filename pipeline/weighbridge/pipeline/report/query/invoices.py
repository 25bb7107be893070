"""What providers charged beside what their own servers reported, at the prices of the day; and why the two differ.

Both sheets are of whole billing months, as bills are: those the period touches.
"""

from __future__ import annotations

import polars as pl

from weighbridge.pipeline.report.exact import amount
from weighbridge.pipeline.report.sheet import Column, Kind, Sheet, rows_of
from weighbridge.pipeline.report.view import View, collect
from weighbridge.schemas.enumerations import Status

TOKENS = "tokens"
BILLS = (
    Column("period", "Month"),
    Column("provider", "Provider"),
    Column("against", "Held against", Kind.CODE),
    Column("expected", "Expected", Kind.DECIMAL),
    Column("charged", "Charged", Kind.DECIMAL),
    Column("gap", "Gap", Kind.DECIMAL),
    Column("residual", "Not explained", Kind.DECIMAL),
    Column("unit", "Unit"),
    Column("cells", "Cells", Kind.COUNT),
    *(Column(str(status).lower(), str(status).lower().replace("_", " "), Kind.COUNT, sparse=True) for status in Status),
)
REASONS = (
    Column("cause", "Cause", Kind.CODE),
    Column("provider", "Provider"),
    Column("against", "Held against", Kind.CODE),
    Column("amount", "Amount", Kind.DECIMAL),
    Column("unit", "Unit"),
    Column("cells", "Cells", Kind.COUNT),
    Column("ambiguous", "with rivals", Kind.COUNT, sparse=True),
)
_BY = ("period", "provider", "against", "unit")


def bills(view: View) -> Sheet:
    """Each month and provider, against pages and invoices, in each unit: only cells both sides of which are known."""
    cells = view.whole("invoice_gap").filter(pl.col("period").is_in(view.period.months))
    known = pl.col("gap").is_not_null()
    counted = [(pl.col("status") == str(status)).sum().cast(pl.Int64).alias(str(status).lower()) for status in Status]
    summed = cells.group_by(_BY).agg(
        *(amount(pl.col(name).filter(known)).alias(name) for name in ("expected", "charged", "gap", "residual")),
        pl.len().cast(pl.Int64).alias("cells"),
        *counted,
    )
    return Sheet(
        name="invoices",
        title="Bills beside priced usage",
        columns=BILLS,
        rows=rows_of(collect(summed).sort(_BY), BILLS),
        sources=("invoice_gap",),
        empty="No bill and no usage page of these months is held against anything: import some with `invoice import`.",
        note="Of cells that cannot be compared (no price, no rate, taxes) only the number is in this table.",
        dated=False,
    )


def reasons(view: View) -> Sheet:
    """What each cause stands for, the largest first."""
    cells = view.whole("invoice_gap", ["cell", "provider", "against", "period"])
    causes = view.whole("invoice_cause").filter(pl.col("period").is_in(view.period.months))
    joined = causes.drop("period").join(cells.drop("period"), on="cell", how="left")
    summed = joined.group_by("cause", "provider", "against", "unit").agg(
        amount(pl.col("amount")).alias("amount"),
        pl.len().cast(pl.Int64).alias("cells"),
        (pl.col("confidence") == "ambiguous").sum().cast(pl.Int64).alias("ambiguous"),
    )
    by = (pl.col("unit") == TOKENS, pl.col("amount").abs(), "cause", "provider", "against", "unit")
    ordered = collect(summed).sort(by, descending=[False, True, False, False, False, False])
    return Sheet(
        name="invoice_causes",
        title="Why bills differ",
        columns=REASONS,
        rows=rows_of(ordered, REASONS),
        sources=("invoice_cause", "invoice_gap"),
        empty="Nothing differs, or nothing explains it.",
        note="Positive: charged more than expected.",
        dated=False,
    )
