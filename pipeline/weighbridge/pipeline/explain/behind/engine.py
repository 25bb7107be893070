"""Behind findings about engines and their sheets: the windows, those with the largest difference first."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from weighbridge.pipeline.engine.cause import all_causes
from weighbridge.pipeline.engine.found import PREFIX
from weighbridge.pipeline.explain.called import same
from weighbridge.pipeline.explain.held import Row
from weighbridge.pipeline.explain.kind import Asked
from weighbridge.pipeline.explain.kinds.engine_window import named, window_node
from weighbridge.pipeline.explain.source import SHOWN, Behind, group, subject_of
from weighbridge.pipeline.reconcile.tree.node import Node
from weighbridge.pipeline.report.view import View
from weighbridge.schemas.enumerations import FindingOrigin

_SUBJECT = ("engine", "model", "instance", "counter", "source")
_KEY = ("day", "source", "engine", "model", "instance", "counter", "label", "until")


def of_finding(asked: Asked, finding: Row) -> tuple[Node, ...]:
    """The windows a finding adds up. A name its subject lacks is one that is not known."""
    about = dict.fromkeys(_SUBJECT) | subject_of(finding)
    gaps = asked.lake.scan("engine_gap", first=finding["first_day"], last=finding["last_day"])
    return _windows(asked, gaps.filter(*same(about, *_SUBJECT)), finding["cause"])


def of_row(asked: Asked, view: View, sheet: str, about: Mapping[str, object]) -> tuple[Node, ...]:
    """The windows of the days of a report that a row adds up."""
    del sheet
    gaps = asked.lake.scan("engine_gap", first=view.period.first, last=view.period.last)
    cause = about.get("cause")
    whole = [pl.col("label").is_null()] if cause else []
    return _windows(asked, gaps.filter(*same(about, *_SUBJECT, "label"), *whole), None if cause is None else str(cause))


def _windows(asked: Asked, gaps: pl.LazyFrame, cause: str | None) -> tuple[Node, ...]:
    """Windows by the part of a cause in them, or by what none explains; else by the gap."""
    frame = gaps.with_columns(part=pl.when(pl.col("residual") != 0).then("residual").otherwise("gap"))
    if cause is not None:
        causes = asked.lake.scan("engine_gap_cause").filter(pl.col("cause") == cause)
        parts = causes.select(*_KEY, part="tokens")
        frame = gaps.join(parts, on=list(_KEY), how="inner", nulls_equal=True)
    rows = named(frame).collect().sort(pl.col("part").abs(), "called", descending=[True, False])
    told = tuple(window_node(asked, row) for row in rows.head(SHOWN).iter_rows(named=True))
    return group("windows", told, rows.height)


def titles() -> Mapping[str, str]:
    """What its causes mean, by their code and by that of their findings."""
    return {code: cause.title for cause in all_causes() for code in (cause.code, PREFIX + cause.code)}


BEHIND = Behind(FindingOrigin.ENGINE, of_finding, titles, ("engine_counters", "engine_causes"), of_row)
