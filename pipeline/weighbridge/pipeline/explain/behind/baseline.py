"""Behind findings of baselines: the cells of the day, their limits, and how the day stood to them."""

from __future__ import annotations

import polars as pl

from weighbridge.pipeline.explain.held import Row
from weighbridge.pipeline.explain.kind import Asked
from weighbridge.pipeline.explain.source import Behind, group, subject_of
from weighbridge.pipeline.reconcile.tree.node import Node, leaves
from weighbridge.schemas.enumerations import FindingOrigin
from weighbridge.schemas.finding import EVIDENCE_ROWS

_CELL = (
    *("measure", "token_class", "model_revision", "method", "season", "rows", "days", "lower", "upper", "limit"),
    *("day_rows", "exceeding", "beyond_limit", "median", "expected", "observed", "p_value", "driver", "key"),
    *("amount", "currency"),
)
_NAMES = ("tenant", "task", "model")


def of_finding(asked: Asked, finding: Row) -> tuple[Node, ...]:
    """The cells that left their limits on the days of a finding."""
    if finding["first_day"] is None:
        return ()
    about = subject_of(finding)
    wanted = [pl.col(name).cast(pl.String) == about[name] for name in _NAMES if name in about]
    rows = asked.lake.scan("baseline", first=finding["first_day"], last=finding["last_day"]).filter("reported", *wanted)
    first = rows.sort("day", *_NAMES, "measure", "token_class").head(EVIDENCE_ROWS).collect()
    return group("cells", tuple(Node("cell", row["day"], leaves(row, _CELL)) for row in first.iter_rows(named=True)))


BEHIND = Behind(FindingOrigin.BASELINE, of_finding)
