"""`weighbridge audit`: may a provider be accused of over-reporting?"""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weighbridge.cli.command import WEIGH, Command
from weighbridge.cli.exits import CLEAN, FINDINGS
from weighbridge.cli.options import AsJson, Config, LogLevel, Month, parse_day
from weighbridge.cli.output import counted, write_json, write_line, write_table
from weighbridge.cli.session import home_of

if TYPE_CHECKING:
    from weighbridge.pipeline.audit.calibrate import Calibration
    from weighbridge.pipeline.audit.cell import Cell
    from weighbridge.pipeline.audit.found import Outcome

_CELL = ("measure", "provider", "model", "grade")


def parse_range(text: str) -> tuple[date, date]:
    """Two days written `FROM..TO`."""
    first, dots, last = text.partition("..")
    if not dots:
        raise typer.BadParameter(f"{text!r} is no range of days; write it as FROM..TO, such as 2026-03-01..2026-03-14")
    return parse_day(first), parse_day(last)


def audit(
    ctx: typer.Context,
    month: Month = None,
    alpha: Annotated[
        float, typer.Option("--alpha", help="Promised chance that an honest cell is accused in a month.")
    ] = 0.01,
    cell: Annotated[
        str | None, typer.Option("--cell", metavar="TEXT", help="Show only cells with this text in one of their names.")
    ] = None,
    calibrate: Annotated[
        str | None, typer.Option("--calibrate", metavar="FROM..TO", help="Days on which providers were honest.")
    ] = None,
    as_json: AsJson = False,
    config: Config = None,
    log_level: LogLevel = None,
) -> int:
    """Hold what providers reported to account, cell by cell, at a promised rate of false accusations.

    Reconcile first. A cell is accused only where the bet against it has come to 1/alpha, its gap grows with the size
    of the answers, and it was calibrated; the days it was calibrated with are not audited. Exit 1 where one is accused.
    """
    from weighbridge.pipeline.audit.audit import audit as hold
    from weighbridge.pipeline.audit.calibrate import calibrate as learn
    from weighbridge.schemas.enumerations import AuditVerdict

    lake = home_of(ctx, config, log_level).lake()
    learnt = {} if calibrate is None else learn(lake, *parse_range(calibrate))
    days = [day for day in lake.days("reconciled") if month in {None, f"{day:%Y-%m}"}]
    result = hold(lake, days=days, alpha=alpha)
    shown = [
        (period, each)
        for period, outcomes in result.outcomes.items()
        for each in outcomes
        if cell is None or any(cell in (name or "") for name in each.cell)
    ]
    if as_json:
        told = [{"month": period, **_told(each, alpha)} for period, each in shown]
        write_json({"alpha": alpha, "calibrated": [_learnt(*each) for each in learnt.items()], "cells": told})
    else:
        _write(shown, learnt, alpha)
    return FINDINGS if any(each.judged.verdict is AuditVerdict.ACCUSED for _, each in shown) else CLEAN


def _told(each: Outcome, alpha: float) -> dict[str, Any]:
    from weighbridge.pipeline.audit.words import sentence
    from weighbridge.schemas.enumerations import Grade

    judged = each.judged
    lower, upper = each.rate.interval(alpha)
    return {
        **each.cell._asdict(),
        "verdict": judged.verdict,
        "cause": None if judged.label is None else judged.label.code,
        "rows": each.rows,
        "broken": each.broken,
        "observed": each.observed,
        "gap": each.gap,
        "rate_lower": lower,
        "rate_upper": upper,
        "slope": judged.slope,
        "slope_lower": judged.lower,
        "slope_upper": judged.upper,
        "amount": each.amount,
        "currency": each.currency,
        "lacking": judged.lacking,
        "evidence": each.evidence,
        "says": sentence(judged.verdict, Grade(each.cell.grade), judged.label, judged.lacking),
    }


def _learnt(cell: Cell, calibration: Calibration) -> dict[str, Any]:
    held = calibration.tolerance
    return {**cell._asdict(), "rows": held.rows, "first_day": calibration.first_day, "last_day": calibration.last_day}


def _write(shown: list[tuple[str, Outcome]], learnt: dict[Cell, Calibration], alpha: float) -> None:
    from weighbridge.cli.tables import measured
    from weighbridge.schemas.enumerations import AuditVerdict

    if learnt:
        rows = sum(each.tolerance.rows for each in learnt.values())
        write_line(f"calibrated {counted(len(learnt), 'cell')} with {counted(rows, 'answer')}\n")
    lines: list[list[object]] = []
    for period, each in shown:
        lower, upper = each.rate.interval(alpha)
        label = None if each.judged.label is None else each.judged.label.code
        names = [getattr(each.cell, name) for name in _CELL]
        share = f"{100 * lower:+.2f} to {100 * upper:+.2f} %"
        money = measured(each.amount, each.currency)
        lines.append([period, *names, each.rows, each.gap, share, each.judged.verdict, label, money])
    write_table(["month", *_CELL, "answers", "gap", "mean relative gap", "verdict", "cause", "money"], lines)
    said: dict[str, None] = {}
    for _, each in shown:
        if each.judged.verdict not in {AuditVerdict.CLEAN, AuditVerdict.UNDECIDED}:
            said[_told(each, alpha)["says"]] = None
    for says in said:
        write_line(f"\n{says}")
    write_line("\nNext: weighbridge findings ls --code audit_overbilled")


COMMAND = Command("audit", audit, WEIGH, order=3)
