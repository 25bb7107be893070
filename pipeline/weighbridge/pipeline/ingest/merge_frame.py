"""Leaves to figures and parts to reports over columns: `plan.apply` and `merge`, for many reports of one dialect.

Rows are cut by leaf shape, so that a role is one position of a list in each cut; then all shapes are one frame again.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_

import polars as pl

from weighbridge.pipeline.ingest.columns import NO, bit, either, holds
from weighbridge.pipeline.ingest.dialect import CORE, PLACEHOLDERS, Dialect, Role
from weighbridge.pipeline.ingest.iterations import calls_in
from weighbridge.pipeline.ingest.known_frame import completed
from weighbridge.pipeline.ingest.merge import LIFETIMES
from weighbridge.pipeline.ingest.outcome import Flag
from weighbridge.pipeline.ingest.parts import ERROR_EVENT, INTEGRAL_FLOAT
from weighbridge.pipeline.ingest.plan import LIMIT, Plan, plan_of
from weighbridge.schemas.enumerations import Ended, ReportPart


def figures_of(dialect: Dialect, parts: pl.DataFrame) -> pl.DataFrame:
    """What each part says.

    Args:
        dialect: how the leaves are read.
        parts: row, report_id, part_kind, ended, notes, leaf_shape, leaf_integers.

    Returns:
        at (the place among `parts`, whose order is kept), row, report_id, part_kind, ended, failed (an error event
        came after), a column per role, noticed, counted; calls_at (`at` where iterations are listed), if any are.
    """
    cut = parts.with_row_index("at").partition_by("leaf_shape", maintain_order=True)
    pieces = [_piece(dialect, str(rows["leaf_shape"][0]), rows) for rows in cut]
    frame = pl.concat(pieces, how="diagonal") if len(pieces) > 1 else pieces[0]
    frame = frame.sort("at") if len(pieces) > 1 else frame
    roles = roles_in(frame)
    if dialect.merges:
        frame = _opened(frame, roles)
    return frame.with_columns(
        counted=either([pl.col(role).is_not_null() for role in roles if role in CORE]),
        noticed=pl.col("noticed") | bit(_noted(INTEGRAL_FLOAT), Flag.INTEGRAL_FLOAT),
        failed=_noted(ERROR_EVENT),
    ).drop("notes")


def _opened(frame: pl.DataFrame, roles: Sequence[Role]) -> pl.DataFrame:
    """Parts that revise each other: placeholders of the opening are dropped, a lifetime split is one field."""
    opening = pl.col("part_kind") == str(ReportPart.START)
    lifetimes = [role for role in LIFETIMES if role in roles]
    split = either(pl.col(role).is_not_null() for role in lifetimes)
    return frame.with_columns(
        *(pl.when(~opening).then(role).alias(role) for role in roles if role in PLACEHOLDERS),
        *(pl.when(split).then(pl.col(role).fill_null(0)).alias(role) for role in lifetimes),
    )


def roles_in(frame: pl.DataFrame) -> list[Role]:
    """The roles that are columns of a frame, in the order of the roles."""
    return [role for role in Role if role in frame.columns]


def _piece(dialect: Dialect, shape: str, rows: pl.DataFrame) -> pl.DataFrame:
    plan: Plan = plan_of(dialect, shape)
    noticed = []
    columns = {"calls_at": pl.col("at")} if calls_in(dialect, shape) else {}
    for role, fields in plan.sources:
        sums = [_field(positions) for positions in fields]
        columns[str(role)] = pl.coalesce(sums)
        large = either([(_at(at) > LIMIT) | (_at(at) < -LIMIT) for positions in fields for at in positions])
        noticed.append(bit(large, Flag.COUNT_TOO_LARGE))
        if len(sums) > 1:
            noticed.append(bit(either([one != columns[str(role)] for one in sums]), Flag.FIELDS_DISAGREE))
    unmapped = either([_at(at).is_not_null() for at in plan.unmapped])
    noticed.append(bit(unmapped, Flag.UNMAPPED_LEAVES))
    noticed.append(bit(either([_at(at).is_not_null() for at in plan.children]), Flag.CHILD_CALLS))
    return rows.select("at", "row", "report_id", "part_kind", "ended", "notes", **columns, noticed=reduce(or_, noticed))


def _at(position: int) -> pl.Expr:
    return pl.col("leaf_integers").list.get(position, null_on_oob=True)


def _field(positions: Sequence[int]) -> pl.Expr:
    """The sum of the rows of a list, unknown where all of them are."""
    if len(positions) == 1:
        return _at(positions[0])
    # Beyond the limit a count is refused anyway; bounded, the sum of a list stays within 64 bits.
    rows = [_at(at).clip(-LIMIT, LIMIT) for at in positions]
    return pl.when(either([row.is_not_null() for row in rows])).then(pl.sum_horizontal(rows))


def _noted(note: str) -> pl.Expr:
    return holds(pl.col("notes").list.contains(note))


def single(dialect: Dialect, parts: pl.DataFrame) -> pl.DataFrame:
    """The figures of reports of one part each."""
    return _finish(dialect, parts.with_columns(first_kind="part_kind", several=NO, stale_split=NO))


def last(dialect: Dialect, parts: pl.DataFrame) -> pl.DataFrame:
    """The figures of reports whose last part with counts holds the final ones; rows sorted by report and part."""
    final = (pl.col("part_kind") == str(ReportPart.FINAL)) & pl.col("counted")
    chosen = parts.group_by("report_id", maintain_order=True).agg(
        at=pl.coalesce(pl.col("at").filter("counted").max(), pl.col("at").max()),
        failed_at=pl.col("at").filter("failed").max(),
        first_row=pl.col("row").first(),
        last_ended=pl.col("ended").last(),
        several=final.sum() > 1,
    )
    merged = chosen.join(parts.drop("report_id"), on="at", how="left", maintain_order="left")
    merged = merged.with_columns(
        row="first_row",
        ended="last_ended",
        failed=holds(pl.col("failed_at") >= pl.col("at")),
        first_kind="part_kind",
        stale_split=NO,
    )
    return _finish(dialect, merged.drop("at", "failed_at", "first_row", "last_ended"))


def revised(dialect: Dialect, parts: pl.DataFrame) -> pl.DataFrame:
    """The figures of reports whose opening is revised by later parts; rows sorted by report and part."""
    opening = pl.col("part_kind") == str(ReportPart.START)
    answers = parts.group_by("report_id", maintain_order=True).agg(
        begins=pl.coalesce(pl.col("at").filter(opening).max(), pl.col("at").min()),
        several=opening.sum() > 1,
        first_row=pl.col("row").first(),
        last_ended=pl.col("ended").last(),
    )
    used = parts.join(answers, on="report_id", how="left", maintain_order="left").filter(
        pl.col("at") >= pl.col("begins")
    )
    merged = used.group_by("report_id", maintain_order=True).agg(
        *(pl.col(role).last(ignore_nulls=True) for role in roles_in(used)),
        noticed=pl.col("noticed").bitwise_or(),
        failed=pl.col("failed").any(),
        first_kind=pl.col("part_kind").first(),
        row=pl.col("first_row").first(),
        ended=pl.col("last_ended").last(),
        several=pl.col("several").first(),
        stale_split=_stale(roles_in(used)),
        **({"calls_at": pl.col("calls_at").last(ignore_nulls=True)} if "calls_at" in used.columns else {}),
    )
    return _finish(dialect, merged)


def _stale(roles: Sequence[Role]) -> pl.Expr:
    """Whether the writes were revised by a part that does not repeat their lifetime split."""
    split_roles = [role for role in LIFETIMES if role in roles]
    if Role.CACHE_WRITE not in roles or not split_roles:
        return pl.lit(value=False).first()
    written, split = pl.col(Role.CACHE_WRITE), either([pl.col(role).is_not_null() for role in split_roles])
    later = pl.col("at").filter(written.is_not_null()).max() > pl.col("at").filter(split).max()
    changed = written.last(ignore_nulls=True).ne_missing(written.filter(split).last())
    return holds(later & changed)


def _finish(dialect: Dialect, reports: pl.DataFrame) -> pl.DataFrame:
    """What is noticed about a report as a whole."""
    reports = completed(reports)
    roles = roles_in(reports)
    counted = either([pl.col(role).is_not_null() for role in roles if role in CORE])
    output = pl.col(Role.OUTPUT).is_null() if Role.OUTPUT in roles else pl.lit(value=True)
    opened = (pl.col("first_kind") == str(ReportPart.START)) & output & pl.lit(dialect.merges)
    cut = opened | (pl.col("ended") == str(Ended.CUT))
    noticed = (
        pl.col("noticed")
        | bit(pl.col("several"), Flag.SEVERAL_ANSWERS)
        | bit(counted & pl.col("failed"), Flag.ERROR_AFTER_USAGE)
        | bit(counted & cut, Flag.OUTPUT_INCOMPLETE)
    )
    listed = [name for name in ("calls_at",) if name in reports.columns]
    return reports.select("row", "ended", *roles, "stale_split", *listed, noticed=noticed)
