"""Evidence that is only worth fetching for the few rows with something left to explain, one row per attempt each.

    children        ended_choices, iterations_input, iterations_output    of the calls inside an answer; `REQUESTS`
    running totals  first_* and sum_* of the usages that a stream carried one after the other, and last_*

A stream that reports running totals has said the same tokens again and again; only the last of them is the answer's.
Each part of a report is read alone here, with the dialect the report as a whole is read with.
"""

from __future__ import annotations

import narwhals as nw
import polars as pl

from weighbridge.pipeline.ingest.readings import REPORT_READ, last_revisions, read_reports
from weighbridge.pipeline.lake.figures import LARGEST
from weighbridge.pipeline.reconcile.explain.requests import READ, REQUESTS, requests, with_depth
from weighbridge.pipeline.reconcile.frames import KEY, Frame, beyond, latest, rows_where, total
from weighbridge.schemas.enumerations import ChildKind, Direction, FinishReason, Verdict

CHILDREN = ("ended_choices", *(f"iterations_{direction}" for direction in Direction), *REQUESTS)
RUNNING = tuple(f"{which}_{direction}" for which in ("first", "last", "sum") for direction in Direction)
CHILD_READ = (*KEY, "day", "source", "child", "revision", "kind", "finish_reason", *READ)
OWN_END = (FinishReason.STOP, FinishReason.TOOL_CALLS)
_COUNTS = ("input_computed", "output_computed")
_PART_KEY = (*KEY, "source", "child", "report")


def nothing(names: tuple[str, ...]) -> pl.DataFrame:
    """Late evidence of no attempt at all."""
    return pl.DataFrame(schema=dict.fromkeys((*KEY, *names), pl.Int64()))


def of_children(children: Frame) -> Frame:
    """Per attempt how many of its choices came to their own end, and what iterations inside its answer computed.

    Args:
        children: rows of the table `child` with at least `CHILD_READ`.

    Returns:
        `KEY` and `CHILDREN`; of several sources the one that tells most.
    """
    seen = latest(children, (*KEY, "source", "child"))
    # A call inside an answer that is larger than any can be says nothing: its sums must not hide those of others.
    plausible = {name: nw.when(~beyond(name)).then(nw.col(name)) for name in _COUNTS}
    rows = seen.with_columns(
        **plausible,
        choice=nw.col("kind") == ChildKind.CHOICE,
        iteration=nw.col("kind") == ChildKind.ITERATION,
    )
    told = {
        f"iterations_{direction}": total(nw.when(nw.col("iteration")).then(nw.col(f"{direction}_computed")))
        for direction in Direction
    }
    ended = nw.col("choice") & nw.col("finish_reason").is_in(list(OWN_END))
    own = rows.group_by(*KEY, "source").agg(
        choices=rows_where(nw.col("choice")), ended=rows_where(ended), **told, **requests()
    )
    known = with_depth(own).with_columns(ended_choices=nw.when(nw.col("choices") > 0).then(nw.col("ended")))
    return known.group_by(*KEY).agg(**{name: nw.col(name).max() for name in CHILDREN})


def of_running(reports: pl.DataFrame) -> pl.DataFrame:
    """Per attempt what a stream reported first, last, and in all, where it reported several times.

    Args:
        reports: rows of `usage_report` with at least `ingest.readings.REPORT_READ`.

    Returns:
        `KEY` and `RUNNING`; null where a part does not tell, or where several reports of the attempt have parts.
    """
    last = last_revisions(reports.select(REPORT_READ))
    several = last.filter(pl.len().over(_PART_KEY) > 1)
    alone = several.with_columns(report="part", part=pl.lit(0, dtype=last.schema["part"]))
    order = several.select(*_PART_KEY).unique().group_by(KEY).len().filter(pl.col("len") == 1).select(KEY)
    read = read_reports(alone).join(order, on=list(KEY), how="semi")
    readable = pl.col("verdict").is_in([str(Verdict.PROVED), str(Verdict.ASSUMED)])
    figures: dict[str, pl.Expr] = {}
    for direction in Direction:
        plausible = readable & pl.col(f"{direction}_total").is_between(0, LARGEST)
        known = pl.when(plausible).then(f"{direction}_total").sort_by("report").drop_nulls()
        figures |= {
            f"first_{direction}": pl.when(known.len() > 1).then(known.first()),
            f"last_{direction}": pl.when(known.len() > 1).then(known.last()),
            f"sum_{direction}": pl.when(known.len() > 1).then(known.sum()),
        }
    return read.group_by(KEY).agg(**figures).select(*KEY, *RUNNING).sort(KEY)
