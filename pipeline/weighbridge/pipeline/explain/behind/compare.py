"""Behind findings of a comparison: what its likely cause means, and the figures the comparison was judged by."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from weighbridge.pipeline.compare.cause import CAUSES
from weighbridge.pipeline.explain.held import Row
from weighbridge.pipeline.explain.kind import Asked
from weighbridge.pipeline.explain.source import Behind, group, subject_of
from weighbridge.pipeline.reconcile.tree.node import Node, leaves
from weighbridge.schemas.comparison_run import ACTED
from weighbridge.schemas.enumerations import FindingOrigin

_SHOWN = (
    *("judgement", "measure", "loss", "loss_low", "loss_high", "margin", "resource", "saved", "pairs", "unshown"),
    *("attended", "attended_dense", "computed", "kv_bytes", "seconds", "implementation", "parameters"),
)


def of_finding(asked: Asked, finding: Row) -> tuple[Node, ...]:
    """The strategy and its baseline in the comparisons of those days, the latest first."""
    about = subject_of(finding)
    named = [about[name] for name in ("strategy", "baseline") if name in about]
    named += [f"{name}{ACTED}" for name in named]  # and the pairs on which it acted, where these are some
    rows = asked.lake.scan("comparison", first=finding["first_day"], last=finding["last_day"])
    held = rows.filter(pl.col("strategy").is_in(named)).collect()
    held = held.sort("made_at", "comparison_id", "strategy", descending=[True, False, False])
    nodes = tuple(Node("strategy", row["strategy"], leaves(row, _SHOWN)) for row in held.iter_rows(named=True))
    return group("comparisons of that day", nodes, held.height)


def titles() -> Mapping[str, str]:
    """What its causes mean."""
    return {cause.code: cause.title for cause in CAUSES}


BEHIND = Behind(FindingOrigin.COMPARE, of_finding, titles)
