"""Behind findings about bills and their sheets: the cells, or the lines that nobody could put into one."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

import polars as pl

from weighbridge.pipeline.explain.called import same
from weighbridge.pipeline.explain.held import Held, Row
from weighbridge.pipeline.explain.kind import Asked
from weighbridge.pipeline.explain.kinds.invoice_cell import cell_node, line_node, spoiled_node
from weighbridge.pipeline.explain.source import SHOWN, Behind, group, subject_of
from weighbridge.pipeline.ingest.charges.days import begin_of
from weighbridge.pipeline.invoice.cause import all_causes
from weighbridge.pipeline.invoice.findings.words import CONTRADICTORY, NOT_CHARGED, PROVISIONAL, UNEXPLAINED, UNKNOWN
from weighbridge.pipeline.reconcile.tree.node import Node
from weighbridge.pipeline.report.view import View
from weighbridge.schemas.enumerations import FindingOrigin, Status

_STATUS = {
    UNEXPLAINED: Status.UNEXPLAINED,
    NOT_CHARGED: Status.UNEXPLAINED,
    UNKNOWN: Status.NOT_COMPARED,
    PROVISIONAL: Status.PROVISIONAL,
}


def of_finding(asked: Asked, finding: Row) -> tuple[Node, ...]:
    """The cells a finding adds up; the lines of its files, where it is about lines alone."""
    about = subject_of(finding)
    gaps = asked.lake.scan("invoice_gap").filter(
        pl.col("period") == finding["period"], *same(about, "provider", "against")
    )
    if finding["code"] == CONTRADICTORY:
        return _spoiled(asked, finding, about)
    if finding["cause"] is None and finding["code"] not in _STATUS:
        return _lines(asked, finding, about)
    if finding["code"] in _STATUS:
        gaps = gaps.filter(
            pl.col("status") == str(_STATUS[finding["code"]]), *same({"model": about.get("model")}, "model")
        )
    return _cells(asked, gaps, finding["cause"]) or _lines(asked, finding, about)


def _spoiled(asked: Asked, finding: Row, about: Mapping[str, str]) -> tuple[Node, ...]:
    """The calls it counts, by the clock of the billing zone."""
    zone = asked.contract(about["provider"]).zone
    span = begin_of(finding["first_day"], zone), begin_of(finding["last_day"] + timedelta(days=1), zone)
    return spoiled_node(asked, about["provider"], span, about.get("model"))


def of_row(asked: Asked, view: View, sheet: str, about: Mapping[str, object]) -> tuple[Node, ...]:
    """The cells of the billing months of a report that a row adds up."""
    del sheet
    gaps = asked.lake.scan("invoice_gap").filter(pl.col("period").is_in(view.period.months))
    cause = about.get("cause")
    wanted = same(about, "period", "provider", "against", *(() if cause else ("unit",)))
    return _cells(asked, gaps.filter(*wanted), None if cause is None else str(cause), about.get("unit"))


def _cells(asked: Asked, gaps: pl.LazyFrame, cause: str | None, unit: object = None) -> tuple[Node, ...]:
    """Cells by the part of a cause in them, else by what differs; a cell whose difference is not known comes last."""
    frame = gaps.with_columns(part=pl.when(pl.col("residual") != 0).then("residual").otherwise("gap"))
    if cause is not None:
        causes = asked.lake.scan("invoice_cause").filter(
            pl.col("cause") == cause, *(same({"unit": unit}, "unit") if unit else ())
        )
        frame = gaps.join(causes.select("cell", part="amount"), on="cell", how="inner")
    rows = frame.collect().sort(pl.col("part").abs(), "cell", descending=[True, False], nulls_last=True)
    told = tuple(cell_node(asked, row) for row in rows.head(SHOWN).iter_rows(named=True))
    return group("cells of bills", told, rows.height)


def _lines(asked: Asked, finding: Row, about: Mapping[str, str]) -> tuple[Node, ...]:
    """The last revision of the lines of a provider in the files of a finding, of the invoice it names."""
    wanted = dict(about) | ({"invoice_number": about["invoice"]} if "invoice" in about else {})
    frame = asked.lake.scan("invoice_line").filter(
        pl.col("segment").is_in(finding["segments"] or []), *same(wanted, "provider", "invoice_number", "sku")
    )
    rows = (
        frame.sort("revision").collect().unique(["provider", "invoice_id", "line_id"], keep="last", maintain_order=True)
    )
    ranked = rows.sort(
        pl.col("amount").abs(), "invoice_id", "line_id", descending=[True, False, False], nulls_last=True
    )
    files = Held(asked.lake, [])
    told = tuple(line_node(files, row) for row in ranked.head(SHOWN).iter_rows(named=True))
    return group("lines", told, rows.height)


def titles() -> Mapping[str, str]:
    """What its causes mean."""
    return {cause.code: cause.title for cause in all_causes()}


BEHIND = Behind(FindingOrigin.INVOICE, of_finding, titles, ("invoices", "invoice_causes"), of_row)
