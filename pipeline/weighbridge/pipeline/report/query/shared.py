"""The figures of the shared edition, from histograms alone: what they add up to, by day, by cell, and how they spread.

A row says how many attempts lie between two bounds, so a sum of values is told as the least and the most it can be, and
about what it is: each attempt counted with the geometric middle of its row. Attempts of which a value is not told count
nothing towards it, and are counted themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from importlib import metadata

import polars as pl

from weighbridge.pipeline.report.sheet import Column, Kind, Row, Sheet, rows_of
from weighbridge.pipeline.report.view import View, collect
from weighbridge.schemas.enumerations import SharedMeasure
from weighbridge.schemas.version import SCHEMA_VERSION

TABLE = "shared_histogram"
REST = "all others"
_READ = ("day", "provider", "model", "task", "measure", "unit", "low", "high", "attempts")
_MILLION = Decimal(1_000_000)
_KNOWN = (
    Column("attempts_known", "Attempts that tell", Kind.COUNT),
    Column("attempts_not_told", "Not told", Kind.COUNT),
)
TOTALS = (
    Column("measure", "Measure", Kind.CODE),
    Column("unit", "Unit"),
    *_KNOWN,
    Column("least", "At least", Kind.COUNT),
    Column("about", "About", Kind.COUNT),
    Column("most", "At most", Kind.COUNT),
)
AMOUNTS = (
    Column("currency", "Currency"),
    *_KNOWN,
    *(
        Column(name, label, Kind.MONEY, currency_in="currency")
        for name, label in (("least", "At least"), ("about", "About"), ("most", "At most"))
    ),
)
_FLOW = (
    Column("attempts", "Attempts", Kind.COUNT, adds=True),
    Column("input_about", "Input tokens, about", Kind.COUNT),
    Column("output_about", "Output tokens, about", Kind.COUNT),
)
DAILY = (Column("day", "Day", Kind.DAY), *_FLOW)
CELLS = (Column("provider", "Provider"), Column("model", "Model"), Column("task", "Task"), *_FLOW)
SPREAD = (
    Column("measure", "Measure", Kind.CODE),
    Column("unit", "Unit"),
    Column("attempts_known", "Attempts that tell", Kind.COUNT),
    *(Column(f"p{rank}", f"p{rank}, about", Kind.COUNT) for rank in (50, 95, 99)),
)
BINS = (
    Column("measure", "Measure", Kind.CODE),
    Column("unit", "Unit"),
    Column("low", "From", Kind.COUNT),
    Column("high", "To", Kind.COUNT),
    Column("attempts", "Attempts", Kind.COUNT),
)
ABOUT = (Column("fact", "Fact"), Column("value", "Value"))


def held(view: View) -> pl.DataFrame:
    """The rows of the period, with `about`: the geometric middle of the bounds, null where they are not told."""
    middle = ((pl.col("low") + 1).cast(pl.Float64) * (pl.col("high") + 1).cast(pl.Float64)).sqrt() - 1
    rows = collect(view.read(TABLE, _READ))
    return rows.with_columns(about=middle.round(0).cast(pl.Int64)).sort(_READ)


def attempts(view: View) -> int:
    """How many attempts are told of; each is counted in every measure, so one of them is enough."""
    return _attempts(view.get(held))


def _attempts(rows: pl.DataFrame) -> int:
    return int(rows.filter(pl.col("measure") == SharedMeasure.ARRIVAL)["attempts"].sum())


def _sums() -> list[pl.Expr]:
    told = pl.col("low").is_not_null()
    count = pl.col("attempts").cast(pl.Int128)
    return [
        pl.col("attempts").filter(told).sum().alias("attempts_known"),
        pl.col("attempts").filter(~told).sum().alias("attempts_not_told"),
        *((count * pl.col(column)).sum().alias(name) for name, column in _BOUNDS),
    ]


_BOUNDS = (("least", "low"), ("about", "about"), ("most", "high"))
_NO_SUM = (SharedMeasure.ARRIVAL, SharedMeasure.AMOUNT)


def totals(view: View) -> Sheet:
    """What each measure adds up to."""
    rows = view.get(held).filter(~pl.col("measure").is_in([str(each) for each in _NO_SUM]))
    summed = rows.group_by("measure", "unit").agg(_sums())
    return Sheet(
        name="shared_totals",
        title="Totals",
        columns=TOTALS,
        rows=_in_order(summed, TOTALS),
        sources=(TABLE,),
        empty="Nothing is released for this period.",
        note="Not told: the value is not known, or its bin was too small to be named.",
    )


def _in_order(frame: pl.DataFrame, columns: Sequence[Column]) -> tuple[Row, ...]:
    """Rows in the order measures are declared in, then by what else they have."""
    order = {str(measure): place for place, measure in enumerate(SharedMeasure)}
    ranked = frame.with_columns(_place=pl.col("measure").replace_strict(order, return_dtype=pl.Int64))
    beside = [name for name in ("unit", "low", "high") if name in frame.columns]
    return rows_of(ranked.sort("_place", *beside, nulls_last=False), columns)


def amounts(view: View) -> Sheet:
    """What attempts cost, by currency."""
    rows = view.get(held).filter(pl.col("measure") == SharedMeasure.AMOUNT)
    summed = rows.group_by("unit").agg(_sums()).sort("unit")
    return Sheet(
        name="shared_amounts",
        title="Money",
        columns=AMOUNTS,
        rows=tuple(
            (unit, known, unknown, *(Decimal(int(value)) / _MILLION for value in sums))
            for unit, known, unknown, *sums in summed.iter_rows()
        ),
        sources=(TABLE,),
        empty="No amount is released for this period.",
    )


def _flow(rows: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """Attempts, and reported tokens about, by some columns."""
    middle = pl.col("attempts").cast(pl.Int128) * pl.col("about")
    sides = {
        f"{side}_about": pl.when(pl.col("about").filter(pl.col("measure") == f"{side}_reported").count() > 0).then(
            middle.filter(pl.col("measure") == f"{side}_reported").sum()
        )
        for side in ("input", "output")
    }
    count = pl.col("attempts").filter(pl.col("measure") == SharedMeasure.ARRIVAL).sum()
    return rows.group_by(by).agg(count.alias("attempts"), **sides)


def daily(view: View) -> Sheet:
    """Attempts and reported tokens by UTC day."""
    return Sheet(
        name="shared_daily",
        title="By day",
        columns=DAILY,
        rows=rows_of(_flow(view.get(held), ["day"]).sort("day"), DAILY),
        sources=(TABLE,),
        empty="Nothing is released for this period.",
        note="A day with fewer than 11 attempts, and the newest days of the lake, are not told.",
        shown=31,
    )


def cells(view: View) -> Sheet:
    """Attempts and reported tokens by provider, model and task; small cells are told together."""
    names = ["provider", "model", "task"]
    summed = _flow(view.get(held), names).sort("attempts", *names, descending=[True, False, False, False])
    return Sheet(
        name="shared_cells",
        title="By provider, model and task",
        columns=CELLS,
        rows=rows_of(summed.with_columns(pl.col(names).fill_null(REST)), CELLS),
        sources=(TABLE,),
        empty="Nothing is released for this period.",
        note=f"`{REST}`: cells with fewer than 11 attempts on a day, told together with the smallest one beside them.",
        shown=24,
    )


def spread(view: View) -> Sheet:
    """Percentiles of each measure, as the middle of the row they fall into."""
    rows = view.get(held).filter(pl.col("about").is_not_null() & (pl.col("measure") != SharedMeasure.ARRIVAL))
    rows = rows.group_by("measure", "unit", "about").agg(pl.col("attempts").sum()).sort("measure", "unit", "about")
    counted = pl.col("attempts").cum_sum()
    whole = pl.col("attempts").sum()
    ranks = {f"p{rank}": pl.col("about").filter(counted * 100 >= whole * rank).first() for rank in (50, 95, 99)}
    found = rows.group_by("measure", "unit", maintain_order=True).agg(whole.alias("attempts_known"), **ranks)
    return Sheet(
        name="shared_spread",
        title="How values spread",
        columns=SPREAD,
        rows=_in_order(found, SPREAD),
        sources=(TABLE,),
        empty="Nothing is released for this period.",
        note="Tokens and money have two bins an octave, times four; amounts are in millionths of their currency.",
        shown=24,
    )


def bins(view: View) -> Sheet:
    """Every histogram of the period, days and cells together; in the files only."""
    rows = view.get(held).group_by("measure", "unit", "low", "high").agg(pl.col("attempts").sum())
    return Sheet(
        name="shared_bins",
        title="Histograms",
        columns=BINS,
        rows=_in_order(rows, BINS),
        sources=(TABLE,),
        empty="Nothing is released for this period.",
        note="Bins that were merged on one day and not on another overlap.",
        page=False,
    )


def about(view: View) -> Sheet:
    """What made the page, and what it is made of."""
    period = view.period
    rows: tuple[Row, ...] = (
        ("Product", f"weighbridge {metadata.version('weighbridge')}"),
        ("Vocabulary", f"schema version {SCHEMA_VERSION}"),
        ("Period", period.label),
        ("Days", f"{period.first.isoformat()} to {period.last.isoformat()}, UTC"),
        ("Edition", "shared: histograms, no row of fewer than 11 attempts; no tenant, no attempt, no time of day"),
        ("Data", "simulated by the product itself" if view.simulated else "recorded"),
        ("Made from", f"the table {TABLE} alone; a day is released once, and what came later is not in it"),
    )
    return Sheet(name="about", title="This report", columns=ABOUT, rows=rows, sources=(), empty="", dated=False)
