"""Why one month differs between two places, report by report: what came, was revised or went, and what it costs now."""

from __future__ import annotations

import polars as pl

from weighbridge.pipeline.close.changes import LATE, PRICES, Changes
from weighbridge.pipeline.close.parts import Parts
from weighbridge.pipeline.close.side import Side, Sums, with_untold
from weighbridge.pipeline.close.usage_figures import REPORT


def one_month(before: Side, after: Side) -> Parts:
    """The parts; those of adjustments are added by `diff`."""
    parts = Parts()
    changes = Changes.between(before.records, after.records, before.period)
    rows = changes.rows.with_columns(part=_part())
    names = [name.removesuffix("_before") for name in rows.columns if name.endswith("_before")]
    old = rows.select(*REPORT, "part", *(pl.col(f"{name}_before").alias(name) for name in names))
    gone = changes.gone.with_columns(part=pl.lit("data"))
    sums: dict[str, Sums] = {}
    for frame, sign in ((rows, 1), (old.drop_nulls("day"), -1), (gone, -1)):
        for (name,), some in frame.partition_by("part", as_dict=True).items():
            sums.setdefault(str(name), Sums()).add(with_untold(some), sign)
    for name, found in sums.items():
        parts.add_money(name, found.money)
        parts.add_tokens(name, found.classes)
    parts.models = dict(sums["prices"].models) if "prices" in sums else {}
    for side, sign in ((before, -1), (after, 1)):
        held = Sums()
        for reports in side.reports():
            held.add(reports)
        parts.add_erased(side, held, sign)
    return parts


def _part() -> pl.Expr:
    """What is late or revised is data; the same report with other counts is read by other rules."""
    data = (pl.col("reason") == LATE) | pl.col("revision").ne_missing(pl.col("revision_before"))
    prices = pl.col("reason") == PRICES
    return pl.when(data).then(pl.lit("data")).when(prices).then(pl.lit("prices")).otherwise(pl.lit("rules"))
