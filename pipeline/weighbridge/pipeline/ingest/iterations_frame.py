"""The model calls that answers list, over columns: `iterations` and `breakdown`, shape by shape."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import polars as pl

from weighbridge.pipeline.ingest.breakdown import JUDGED, PARTS, WHOLE
from weighbridge.pipeline.ingest.columns import NO, NULL, bit, either, holds, total
from weighbridge.pipeline.ingest.dialect import Dialect, Role
from weighbridge.pipeline.ingest.iterations import COMPARED, CallPlan, calls_in
from weighbridge.pipeline.ingest.outcome import SPOILED, Flag
from weighbridge.pipeline.ingest.plan import LIMIT


class Apart(NamedTuple):
    """Reports, and those of their calls that are told apart.

    Attributes:
        reports: the figures as they came, with what was noticed about their calls.
        calls: figures of the calls: row (of the report), nth (from 1), inside, child_model, ended, a column per role,
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
        inside = plans[0].inside
        whole = _broken_down(plans, alike.columns) if inside else _adds_up(plans, alike.columns)
        rows = alike.with_columns(_whole=whole)
        apart_calls = [plan for plan in plans if plan.told_apart]
        missing = bit(~pl.col("_whole"), Flag.BREAKDOWN_DIFFERS if inside else Flag.ITERATIONS_LEFT_OUT)
        listed = bit(pl.col("_whole"), Flag.CHILD_CALLS) if apart_calls else 0
        told.append(rows.select("_report", _calls=missing | listed))
        whole_rows = rows.filter("_whole")
        if whole_rows.height:
            calls += [_call(plan, whole_rows, nth) for nth, plan in enumerate(apart_calls, 1)]
    noted = bare.with_row_index("_report").join(pl.concat(told), on="_report", how="left", maintain_order="left")
    noted = noted.with_columns(noticed=pl.col("noticed") | pl.col("_calls").fill_null(0)).drop("_report", "_calls")
    return Apart(noted, _counted(calls) if calls else None)


def _broken_down(plans: tuple[CallPlan, ...], columns: list[str]) -> pl.Expr:
    """Whether the calls make up the figures: `breakdown.adds_up`."""
    top = {role: pl.col(role) if role in columns else NULL for role in JUDGED}
    calls = [{role: _said(plan, role) if role in dict(plan.sources) else NULL for role in JUDGED} for plan in plans]
    sums = {role: total(call[role] for call in calls) for role in (*WHOLE, *PARTS)}
    spoiled = (pl.col("noticed") & int(SPOILED)) != 0
    return pl.all_horizontal(
        ~spoiled,
        *(_sound(values) for values in (top, *calls)),
        *(holds(sums[role] == top[role]) for role in WHOLE),
        *(top[role].is_null() | holds(sums[role] == top[role]) for role in PARTS),
    )


def _sound(values: Mapping[Role, pl.Expr]) -> pl.Expr:
    total_is = values[Role.INPUT] + values[Role.OUTPUT] == values[Role.TOTAL]
    return pl.all_horizontal(
        *(values[role].is_not_null() for role in WHOLE),
        *(values[role].fill_null(0).is_between(0, LIMIT) for role in JUDGED),
        total_is.fill_null(value=True),
        *(values[role].fill_null(0) <= values[whole] for role, whole in PARTS.items()),
    ).fill_null(value=False)


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
        inside=pl.lit(plan.inside),
        child_model=model,
        **roles,
        stale_split=NO,
        noticed=pl.lit(int(Flag.INSIDE_ANSWER) if plan.inside else 0, dtype=pl.Int64),
    )
