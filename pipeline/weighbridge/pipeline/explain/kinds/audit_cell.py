"""A cell of an audit in a month: what is said of it and in which words, on what evidence, and what is tolerated.

The words are those of the audit: what only the provider sees is *consistent*, and never more than that.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import polars as pl

from weighbridge.pipeline.audit.cell import CELL, Cell
from weighbridge.pipeline.audit.found import CODE_OF
from weighbridge.pipeline.audit.labels import LABELS
from weighbridge.pipeline.audit.scales import NAMES
from weighbridge.pipeline.audit.words import quiet, sentence
from weighbridge.pipeline.explain.about import attempts_between
from weighbridge.pipeline.explain.called import called, same
from weighbridge.pipeline.explain.held import Row
from weighbridge.pipeline.explain.kind import Asked, Kind
from weighbridge.pipeline.explain.kinds.attempt import attempts_node
from weighbridge.pipeline.explain.source import group, subject_of
from weighbridge.pipeline.lake.lake import Lake
from weighbridge.pipeline.reconcile.period import ends
from weighbridge.pipeline.reconcile.tree.node import Node, leaves
from weighbridge.pipeline.report.period import MONTH
from weighbridge.schemas.enumerations import AuditVerdict, FindingOrigin, Grade
from weighbridge.schemas.identity import AttemptKey

_WORD = "audit"
_SHOWN = (
    *("day", *CELL, "rows", "pinned", "incomplete", "broken", "gap", "observed", "calibrated", "rate_lower"),
    "rate_upper",
)
_LEARNT = ("first_day", "last_day", "rows", "steepest", "flattest", "variance", "ratio")


def find(asked: Asked) -> Iterator[str]:
    """The cell that is called so."""
    word, _, rest = asked.name.partition("/")
    month = rest.partition("/")[0]
    if word == _WORD and MONTH.fullmatch(month):
        yield from cells(asked.lake, month).filter(pl.col("called") == asked.name)["called"]


def node(asked: Asked, held: str) -> Node:
    """The tree behind a cell in a month."""
    month = held.split("/")[1]
    return audit_node(asked, cells(asked.lake, month).filter(pl.col("called") == held).row(0, named=True))


def cells(lake: Lake, month: str) -> pl.DataFrame:
    """The last day of every cell in a UTC month, that it was judged on, with its name."""
    first, last = ends(month)
    rows = lake.scan("audit_cell", first=first, last=last).filter(pl.col("day").dt.strftime("%Y-%m") == month)
    frame = rows.with_columns(month=pl.col("day").dt.strftime("%Y-%m")).with_columns(called(_WORD, "month", *CELL))
    return frame.sort("called", "day").collect().unique("called", keep="last", maintain_order=True)


def audit_node(asked: Asked, row: Row, *, with_attempts: bool = True) -> Node:
    """The tree behind a row of `audit_cell` that has its name; of a finding its attempts are told already."""
    found = _finding(asked.lake, row)
    bets = tuple(_bet(side, row) for side in ("over", "under") if row[side] is not None)
    slope = (
        (Node("slope", row["slope"], leaves(row, ("slope_lower", "slope_upper"))),) if row["slope"] is not None else ()
    )
    children = (
        Node("verdict", row["verdict"] or "not judged", _words(row, found)),
        *leaves(row, _SHOWN),
        *group("evidence", bets),
        *slope,
        *_tolerance(asked.lake, row),
        *((Node("finding", found["finding_id"]),) if found is not None else ()),
        *(_attempts(asked, row, found) if with_attempts else ()),
    )
    return Node("audit cell", row["called"], children)


def _bet(side: str, row: Row) -> Node:
    """A bet on a side: what it grew to beside what an accusation takes. Logarithms, as it may be beyond any number."""
    asks = (Node("to be reached", -math.log(row["alpha"])),) if row["alpha"] else ()
    return Node(f"logarithm of the e-value for too {'much' if side == 'over' else 'little'}", row[side], asks)


def _words(row: Row, found: Row | None) -> tuple[Node, ...]:
    if row["verdict"] is None:
        return ()
    verdict, grade = AuditVerdict(row["verdict"]), Grade(row["grade"])
    if verdict is AuditVerdict.CLEAN:
        words: str | None = quiet(grade)
    elif found is not None:
        words = found["cure"]
    elif verdict is AuditVerdict.UNDECIDED:
        words = "too little was seen to say anything"
    else:
        label = next((each for each in LABELS if each.code == row["cause"]), None)
        words = sentence(verdict, grade, label) if label or verdict is AuditVerdict.NOT_CALIBRATED else None
    cause = (Node("cause", row["cause"]),) if row["cause"] else ()
    return (*((Node("that is", words),) if words else ()), *cause)


def _finding(lake: Lake, row: Row) -> Row | None:
    """The finding about a cell, where there is one."""
    codes = {code for code, _ in CODE_OF.values()}
    own = lake.scan("finding").filter(
        pl.col("origin") == str(FindingOrigin.AUDIT), pl.col("period") == row["month"], pl.col("code").is_in(codes)
    )
    about = Cell.of(row).subject()
    rows = own.sort("finding_id").collect().iter_rows(named=True)
    return next((each for each in rows if subject_of(each) == about), None)


def _tolerance(lake: Lake, row: Row) -> tuple[Node, ...]:
    """What is tolerated, per scale, and the days it was learnt from; null where the cell was never calibrated."""
    rows = lake.scan("audit_tolerance").filter(*same(row, *CELL)).collect()
    return tuple(
        Node(
            "tolerance",
            None,
            (
                *leaves(each, _LEARNT),
                *(
                    Node(f"{side}, {scale}", value)
                    for side in ("over", "under")
                    for scale, value in zip(NAMES, each[side] or (), strict=False)
                ),
            ),
        )
        for each in rows.iter_rows(named=True)
    )


def _attempts(asked: Asked, row: Row, found: Row | None) -> tuple[Node, ...]:
    """Those with the largest gaps, where something was found; else the largest of its provider and model."""
    if found is not None and found["evidence"]:
        ids = [AttemptKey.from_hex(each).to_hex() for each in found["evidence"]]
        return group("answers with the largest gaps", attempts_node(asked, ids))
    about = {name: row[name] for name in ("provider", "model")}
    ids, many = attempts_between(asked.lake, row["day"].replace(day=1), row["day"], about)
    return group("attempts of its provider and model", attempts_node(asked, ids), many)


KIND = Kind(
    "audit cell",
    f"audit/MONTH/{'/'.join(CELL).upper()}, `-` for what is not known",
    find,
    node,
)
