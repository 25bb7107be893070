"""`weighbridge validate`: hold the lake to its contract before anything is computed from it."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weighbridge.cli.command import WEIGH, Command
from weighbridge.cli.exits import CLEAN, FINDINGS, REFUSED
from weighbridge.cli.options import AsJson, Config, LogLevel, Month, Since, Until, check_range
from weighbridge.cli.output import counted, write_json, write_line, write_table
from weighbridge.cli.session import home_of
from weighbridge.cli.tables import ID_DIGITS

if TYPE_CHECKING:
    from weighbridge.pipeline.lake import Lake
    from weighbridge.pipeline.validate.validation import Validation
    from weighbridge.pipeline.validate.violation import Violation

SHOWN = 50


def validate(
    ctx: typer.Context,
    month: Month = None,
    since: Since = None,
    until: Until = None,
    table: Annotated[
        list[str] | None, typer.Option("--table", metavar="NAME", help="Only this table; may be given several times.")
    ] = None,
    page: Annotated[
        Path | None,
        typer.Option(
            "--page",
            metavar="FILE",
            help="Where the page goes. Default: data-quality.html among the reports; a range is in its name.",
        ),
    ] = None,
    as_json: AsJson = False,
    config: Config = None,
    log_level: LogLevel = None,
) -> int:
    """Hold every table to its contract: values, texts, keys, identities, accounts, freshness and volume.

    Rows that break a rule are held in quarantine by their place and become findings; a page shows every rule with its
    counts per day. Exit 3 where a critical rule is broken: nothing should be computed from these days before its rows
    are mended, released or waived. Exit 1 where a warning is open.
    """
    from weighbridge.pipeline.validate.scope import Scope
    from weighbridge.pipeline.validate.validate import validate as hold_to_contract

    check_range(since, until)
    home = home_of(ctx, config, log_level)
    lake = home.lake()
    days = _days(lake, month, since, until)
    result = hold_to_contract(
        lake,
        today=datetime.now(UTC).date(),
        days=days,
        tables=table or None,
        page=page or home.reports / Scope.of(days, table or None).page,
        most=home.settings.quarantine_rows,
    )
    if as_json:
        write_json(_told(result))
    else:
        _write(result)
    return exit_code(result)


def exit_code(result: Validation) -> int:
    """Refused where the gate is shut, findings where a warning is open."""
    from weighbridge.pipeline.validate.rule import Gravity
    from weighbridge.schemas.enumerations import FindingState

    if not result.gate:
        return REFUSED
    warned = any(v.gravity is Gravity.WARNING and v.state is FindingState.OPEN for v in result.violations)
    return FINDINGS if warned else CLEAN


def _days(lake: Lake, month: str | None, since: date | None, until: date | None) -> list[date] | None:
    """Every day of the calendar from the first to the last asked for, within what the lake has; null: all it has."""
    from weighbridge.schemas.tables import TABLES

    if month is None and since is None and until is None:
        return None
    held = sorted({day for name, about in TABLES.items() if about.daily for day in lake.days(name)})
    if not held:
        return []
    first, last = since or held[0], until or held[-1]
    if month is not None:
        start = date.fromisoformat(f"{month}-01")
        first, last = max(first, start), min(last, (start + timedelta(days=31)).replace(day=1) - timedelta(days=1))
    # A day that nobody has rows of is judged too; but not the years before the first.
    first, last = max(first, held[0] - timedelta(days=31)), min(last, held[-1] + timedelta(days=31))
    return [first + timedelta(days=number) for number in range((last - first).days + 1)]


def _told(result: Validation) -> dict[str, object]:
    return {
        "gate": "open" if result.gate else "shut",
        "why": result.why,
        "rows": result.rows,
        "days": result.days,
        "rules": result.rules,
        "whole": result.scope.whole,
        "quarantined": result.quarantined,
        "held_in_lake": result.held_in_lake,
        "unread": result.unread,
        "released": result.released,
        "findings": result.findings,
        "page": result.page,
        "violations": [_of(violation) for violation in result.violations],
        "unjudged": [{"table": each.table, "what": each.what, "why": each.why} for each in result.unjudged],
    }


def _of(violation: Violation) -> dict[str, object]:
    from weighbridge.pipeline.validate.rule import Gravity

    names = ("table", "rule", "column", "day", "source", "rows", "released", "held", "expected", "observed", "unit")
    finding = None if violation.gravity is Gravity.INFO else violation.finding().finding_id
    return {
        "gravity": violation.gravity,
        "code": violation.kind,
        **{name: getattr(violation, name) for name in names},
        "says": violation.says,
        "state": violation.state,
        "finding": finding,
    }


def _write(result: Validation) -> None:
    broken = result.broken
    if broken:
        rows = [
            [
                violation.finding().finding_id[:ID_DIGITS],
                violation.gravity,
                violation.table,
                violation.rule,
                violation.source,
                violation.day,
                violation.rows if violation.observed is None else violation.observed,
                violation.expected or 0,
                violation.held,
                violation.released,
                violation.state,
            ]
            for violation in broken[:SHOWN]
        ]
        names = ["id", "gravity", "table", "rule", "source", "day", "found", "limit", "held", "released", "state"]
        write_table(names, rows)
        if len(broken) > SHOWN:
            write_line(f"... and {len(broken) - SHOWN:,} more; `weighbridge findings ls` lists them")
        write_line()
    if not result.scope.whole:
        write_line(f"Looked at: {result.scope.says}; without a range everything is.")
    tables = sum(map(bool, result.rows.values()))
    write_line(
        f"{counted(sum(result.rows.values()), 'row')} of {counted(tables, 'table')} held to "
        f"{counted(result.rules, 'rule')} on {counted(len(result.days), 'day')}; {len(result.unjudged):,} not judged, "
        "the page says why"
    )
    if result.unread:
        write_line(f"{counted(result.unread, 'record')} of these days could not be read: weighbridge quarantine ls")
    if result.held_in_lake and not result.scope.whole:
        write_line(f"{counted(result.held_in_lake, 'record')} of the whole lake in quarantine")
    if result.page is not None:
        write_line(f"page: {result.page}")
    if result.gate:
        write_line("The gate is open.")
        return
    write_line("The gate is shut:")
    for line in result.why[:10]:
        write_line(f"  {line}")
    write_line("Next: weighbridge quarantine ls\n      weighbridge findings ls")


COMMAND = Command("validate", validate, WEIGH, order=1)
