"""The model calls that answers leave out of their own figures, over columns: `iterations`, shape by shape."""

from __future__ import annotations

from typing import NamedTuple

import polars as pl

from weighbridge.pipeline.ingest.columns import NO, bit, either
from weighbridge.pipeline.ingest.dialect import Dialect, Role
from weighbridge.pipeline.ingest.iterations import COMPARED, CallPlan, calls_in
from weighbridge.pipeline.ingest.outcome import Flag


class Apart(NamedTuple):
    """Reports, and the calls they leave out.

    Attributes:
        reports: the figures as they came, with what was noticed about their calls.
        calls: figures of the calls: row (of the report), nth (from 1), child_model, ended, a column per role,
            stale_split, noticed; null where there are none.
    """

    reports: pl.DataFrame
    calls: pl.DataFrame | None


def apart(dialect: Dialect, parts: pl.DataFrame, reports: pl.DataFrame) -> Apart:
    """Tell the calls that are in a report's figures from those that are not.

    Args:
        dialect: how the leaves are read.
        parts: leaf_shape, leaf_integers, leaf_texts of every part.
        reports: the merged figures; `calls_at` is the place among `parts` of the leaves with the iterations.
    """
    bare = reports.drop("calls_at", strict=False)
    if "calls_at" not in reports.columns or reports["calls_at"].null_count() == reports.height:
        return Apart(bare, None)
    held = reports.with_row_index("_report").filter(pl.col("calls_at").is_not_null())
    leaves = parts.select("leaf_shape", "leaf_integers", "leaf_texts")[held["calls_at"]]
    held = pl.concat([held, leaves], how="horizontal")
    told, calls = [], []
    for (shape,), alike in held.partition_by("leaf_shape", as_dict=True, maintain_order=True).items():
        plans = calls_in(dialect, str(shape))
        rows = alike.with_columns(_whole=_adds_up(plans, alike.columns))
        outside = [plan for plan in plans if plan.outside]
        missing = bit(~pl.col("_whole"), Flag.ITERATIONS_LEFT_OUT)
        listed = bit(pl.col("_whole"), Flag.CHILD_CALLS) if outside else 0
        told.append(rows.select("_report", _calls=missing | listed))
        whole = rows.filter("_whole")
        calls += [_call(plan, whole, nth) for nth, plan in enumerate(outside, 1)] if whole.height else []
    noted = bare.with_row_index("_report").join(pl.concat(told), on="_report", how="left", maintain_order="left")
    noted = noted.with_columns(noticed=pl.col("noticed") | pl.col("_calls").fill_null(0)).drop("_report", "_calls")
    return Apart(noted, _counted(calls) if calls else None)


def _counted(calls: list[pl.DataFrame]) -> pl.DataFrame:
    """All calls, those of a report numbered from 1."""
    sorted_calls = pl.concat(calls, how="diagonal").sort("row", "nth")
    return sorted_calls.with_columns(nth=pl.int_range(1, pl.len() + 1, dtype=pl.Int32).over("row"))


def _adds_up(plans: tuple[CallPlan, ...], columns: list[str]) -> pl.Expr:
    shown = [plan for plan in plans if plan.shown]
    met = []
    for role in COMPARED:
        inside = [_said(plan, role).fill_null(0) for plan in shown if role in dict(plan.sources)]
        top = pl.col(role).fill_null(0) if role in columns else pl.lit(0, dtype=pl.Int64)
        met.append((pl.sum_horizontal(inside) if inside else pl.lit(0, dtype=pl.Int64)) == top)
    return pl.all_horizontal(met)


def _said(plan: CallPlan, role: Role) -> pl.Expr:
    return pl.coalesce([pl.col("leaf_integers").list.get(at, null_on_oob=True) for at in dict(plan.sources)[role]])


def _call(plan: CallPlan, rows: pl.DataFrame, nth: int) -> pl.DataFrame:
    """The figures of the same call of many reports; one that says nothing is no call."""
    unnamed = pl.lit(None, dtype=pl.String)
    model = unnamed if plan.model is None else pl.col("leaf_texts").list.get(plan.model, null_on_oob=True)
    roles = {str(role): _said(plan, role) for role, _ in plan.sources}
    told = either([expr.is_not_null() for expr in roles.values()])
    return rows.filter(told).select(
        "row",
        "ended",
        nth=pl.lit(nth, dtype=pl.Int32),
        child_model=model,
        **roles,
        stale_split=NO,
        noticed=pl.lit(0, dtype=pl.Int64),
    )
