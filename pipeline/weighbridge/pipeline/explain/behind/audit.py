"""Behind findings of the audit and its sheet: the cell, with its evidence, tolerance and words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import polars as pl

from weighbridge.pipeline.audit.cell import CELL
from weighbridge.pipeline.audit.found import CODE_OF, NOT_CALIBRATED
from weighbridge.pipeline.audit.labels import LABELS
from weighbridge.pipeline.explain.called import same
from weighbridge.pipeline.explain.held import Row
from weighbridge.pipeline.explain.kind import Asked
from weighbridge.pipeline.explain.kinds.audit_cell import audit_node, cells
from weighbridge.pipeline.explain.source import SHOWN, Behind, group, subject_of
from weighbridge.pipeline.reconcile.tree.node import Node
from weighbridge.pipeline.report.view import View
from weighbridge.schemas.enumerations import AuditVerdict, FindingOrigin

_OF_CELLS = {code for code, _ in CODE_OF.values()}


def of_finding(asked: Asked, finding: Row) -> tuple[Node, ...]:
    """The cell of a finding, without the answers it has as evidence; the cells that nobody calibrated."""
    rows = cells(asked.lake, finding["period"])
    if finding["code"] == NOT_CALIBRATED:
        return _told(asked, rows.filter(pl.col("verdict") == str(AuditVerdict.NOT_CALIBRATED)))
    if finding["code"] not in _OF_CELLS:
        return ()
    about = dict.fromkeys(CELL) | subject_of(finding)
    return _told(asked, rows.filter(*same(about, *CELL)), with_attempts=False)


def of_row(asked: Asked, view: View, sheet: str, about: Mapping[str, object]) -> tuple[Node, ...]:
    """The cell of each month of a report that a row is about."""
    del sheet
    found = [cells(asked.lake, month).filter(*same(about, *CELL)) for month in view.period.months]
    return _told(asked, pl.concat(found)) if found else ()


def _told(asked: Asked, rows: pl.DataFrame, *, with_attempts: bool = True) -> tuple[Node, ...]:
    first: Iterable[Row] = rows.head(SHOWN).iter_rows(named=True)
    told = tuple(audit_node(asked, row, with_attempts=with_attempts) for row in first)
    return group("audit cells", told, rows.height)


def titles() -> Mapping[str, str]:
    """What its causes mean."""
    return {label.code: label.says for label in LABELS}


BEHIND = Behind(FindingOrigin.AUDIT, of_finding, titles, ("audits",), of_row)
