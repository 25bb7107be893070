"""`weighbridge findings`: what was found, and what became of it."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Annotated

import typer

from weighbridge.cli.command import LOOK, Command
from weighbridge.cli.exits import CLEAN, FINDINGS
from weighbridge.cli.open_findings import inside, lives, weighs
from weighbridge.cli.options import AsJson, Config, LogLevel, Month, Since, Until, check_range, parse_day
from weighbridge.cli.output import counted, write_json, write_line, write_table
from weighbridge.cli.session import home_of, user_name
from weighbridge.cli.tables import ID_DIGITS, measured, write_findings
from weighbridge.schemas.enumerations import FindingState, Severity

findings = typer.Typer(no_args_is_help=True, help="What was found, and what became of it.")

Id = Annotated[str, typer.Argument(metavar="ID", help=f"The first {ID_DIGITS} or more digits of its id.")]
By = Annotated[str | None, typer.Option("--by", metavar="NAME", help="Who says so. Default: the user of this system.")]


@findings.command("ls")
def ls(
    ctx: typer.Context,
    month: Month = None,
    since: Since = None,
    until: Until = None,
    severity: Annotated[Severity, typer.Option("--severity", help="At least this severe.")] = Severity.INFO,
    state: Annotated[FindingState | None, typer.Option("--state", help="Only in this state.")] = None,
    code: Annotated[str | None, typer.Option("--code", help="Only this code.")] = None,
    as_json: AsJson = False,
    config: Config = None,
    log_level: LogLevel = None,
) -> int:
    """List findings, worst first; exit 1 where a listed one is open and at least a warning."""
    from weighbridge.pipeline.baseline.found import CODES as BASELINE_CODES
    from weighbridge.pipeline.close.adjust import CODES as CLOSE_CODES
    from weighbridge.pipeline.probe.found import CODES as PROBE_CODES
    from weighbridge.pipeline.reconcile.found.codes import checked_code
    from weighbridge.pipeline.retention.found import CODES as RETENTION_CODES
    from weighbridge.pipeline.run.sources import CODES as SOURCE_CODES
    from weighbridge.pipeline.validate.codes import CODES as VALIDATE_CODES

    check_range(since, until)
    lake = home_of(ctx, config, log_level).lake()
    if code is not None:
        others = {*BASELINE_CODES, *CLOSE_CODES, *PROBE_CODES, *RETENTION_CODES, *SOURCE_CODES, *VALIDATE_CODES}
        checked_code(lake, code, others)
    scale = list(Severity)
    held = [
        row
        for row in lives(lake)
        if inside(row, [month] if month else None, since, until)
        and scale.index(Severity(str(row["severity"]))) >= scale.index(severity)
        and state in {None, row["state"]}
        and code in {None, row["code"]}
    ]
    heavy = sum(map(weighs, held))
    if as_json:
        write_json(held)
    else:
        write_findings(held)
        write_line(f"\n{counted(len(held), 'finding')}, {heavy} open and at least a warning")
    return FINDINGS if heavy else CLEAN


@findings.command("show")
def show(
    ctx: typer.Context, finding: Id, as_json: AsJson = False, config: Config = None, log_level: LogLevel = None
) -> int:
    """Show one finding with its evidence and its history; `explain` goes further down."""
    from weighbridge.pipeline.reconcile.tree.prefix import one_of

    lake = home_of(ctx, config, log_level).lake()
    rows = {str(row["finding_id"]): row for row in lives(lake)}
    row = rows[one_of(rows, finding, "finding")]
    changes = lake.scan("finding_status").collect().sort("finding_id", "change").to_dicts()
    history = [change for change in changes if change["finding_id"] == row["finding_id"]]
    if as_json:
        write_json(row | {"history": history})
        return CLEAN
    shown = row | {
        "difference": measured(row["difference"], row["unit"]),
        "amount": measured(row["amount"], row["currency"]),
    }
    hidden = {"unit", "currency", "changed_at", "changed_by", "expires_on"}
    write_table(
        ["finding", ""], [[name, value] for name, value in shown.items() if name not in hidden and value is not None]
    )
    if history:
        write_line()
        names = ["state", "changed_at", "changed_by", "expires_on", "reason"]
        write_table(
            [name.replace("_", " ") for name in names], [[change[name] for name in names] for change in history]
        )
    return CLEAN


@findings.command("ack")
def ack(
    ctx: typer.Context,
    finding: Id,
    reason: Annotated[str | None, typer.Option("--reason", help="Why, in a few words; kept in the lake only.")] = None,
    by: By = None,
    config: Config = None,
    log_level: LogLevel = None,
) -> int:
    """Acknowledge a finding: somebody is on it, so it no longer makes a verb exit with 1."""
    from weighbridge.pipeline.reconcile.found.status import acknowledge

    lake = home_of(ctx, config, log_level).lake()
    done = acknowledge(lake, finding, by=by or user_name(), reason=reason, now=datetime.now(UTC))
    write_line(f"finding {done[:ID_DIGITS]} is acknowledged")
    return CLEAN


@findings.command("waive")
def waive(
    ctx: typer.Context,
    finding: Id,
    reason: Annotated[str, typer.Option("--reason", help="Why it may rest; kept in the lake only.")],
    expires: Annotated[
        date, typer.Option("--expires", metavar="DAY", parser=parse_day, help="Last UTC day of the waiver.")
    ],
    by: By = None,
    config: Config = None,
    log_level: LogLevel = None,
) -> int:
    """Let a finding rest, with a reason and a last day; after that day it is open again."""
    from weighbridge.pipeline.reconcile.found.status import waive as rest

    lake = home_of(ctx, config, log_level).lake()
    done = rest(lake, finding, by=by or user_name(), reason=reason, expires=expires, now=datetime.now(UTC))
    write_line(f"finding {done[:ID_DIGITS]} is waived up to and including {expires}")
    return CLEAN


COMMAND = Command("findings", findings, LOOK)
