"""What engines counted beside what their attempts add up to, and why the two differ."""

from __future__ import annotations

import polars as pl

from weighbridge.pipeline.engine.cause import all_causes
from weighbridge.pipeline.report.exact import tokens
from weighbridge.pipeline.report.sheet import BLANK, Column, Kind, Sheet, rows_of
from weighbridge.pipeline.report.view import View, collect

_SUMS = ("counted", "attempted", "gap", "explained", "residual")
COUNTERS = (
    Column("engine", "Engine"),
    Column("model", "Model"),
    Column("instance", "Server"),
    Column("source", "Told by", Kind.CODE),
    Column("counter", "Counter", Kind.CODE),
    Column("label", "Part", Kind.CODE),
    Column("windows", "Windows", Kind.COUNT),
    Column("counted", "Counted", Kind.COUNT),
    Column("attempted", "Attempts", Kind.COUNT),
    Column("gap", "Gap", Kind.SIGNED),
    Column("explained", "Explained", Kind.SIGNED),
    Column("residual", "Residual", Kind.SIGNED),
)
CAUSES = (
    Column("cause", "Cause", Kind.CODE),
    Column("meaning", "What it is"),
    Column("counter", "Counter", Kind.CODE),
    Column("source", "Told by", Kind.CODE),
    Column("tokens", "Amount", Kind.SIGNED),
    Column("windows", "Windows", Kind.COUNT),
    Column("exact", "of them exact", Kind.COUNT),
)


def engine_counters(view: View) -> Sheet:
    """Per server and counter what all windows of the period add up to."""
    by = ["engine", "model", "instance", "source", "counter", "label"]
    grouped = _inside(view, "engine_gap", [*by, *_SUMS]).group_by(by)
    sums = collect(grouped.agg(*(tokens(name) for name in _SUMS), windows=pl.len().cast(pl.Int64)))
    blank = (pl.col(name).fill_null(BLANK) for name in ("model", "instance", "label"))
    return Sheet(
        name="engine_counters",
        title="Counters of engines beside attempts",
        columns=COUNTERS,
        rows=rows_of(sums.sort(by, nulls_last=True).with_columns(blank), COUNTERS),
        unit="as the counter counts",
        sources=("engine_gap",),
        empty="No engine was scraped in this period.",
        note="Several counters tell the same tokens again: never add one to another. Windows are those that end on "
        "days of the period, in UTC.",
    )


def engine_causes(view: View) -> Sheet:
    """What explains the difference, largest first; parts of counters with labels are left out, as they repeat."""
    columns = ["cause", "counter", "label", "source", "tokens", "low", "high", "confidence"]
    whole = _inside(view, "engine_gap_cause", columns).filter(pl.col("label").is_null())
    sums = collect(
        whole.group_by("cause", "counter", "source").agg(
            tokens("tokens"),
            windows=pl.len().cast(pl.Int64),
            exact=(pl.col("confidence") == "certain").sum().cast(pl.Int64),
        )
    )
    titles = {cause.code: cause.title for cause in all_causes()}
    meaning = pl.col("cause").replace_strict(titles, default=pl.col("cause"), return_dtype=pl.String)
    ranked = sums.sort(pl.col("tokens").abs(), "cause", "counter", "source", descending=[True, False, False, False])
    return Sheet(
        name="engine_causes",
        title="Why engines counted more than attempts",
        columns=CAUSES,
        rows=rows_of(ranked.with_columns(meaning=meaning), CAUSES),
        unit="as the counter counts",
        sources=("engine_gap_cause",),
        empty="No difference between engines and attempts has a cause in this period.",
        note="Engine counts open findings; what is billed is never replaced by them.",
    )


def _inside(view: View, table: str, columns: list[str]) -> pl.LazyFrame:
    frame = view.read(table, [*columns, "day"])
    return frame.filter(pl.col("day").is_between(view.period.first, view.period.last))
