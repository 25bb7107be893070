"""`weighbridge findings`: what was found, and what became of it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from weighbridge.cli.command import LOOK, Command
from weighbridge.cli.commands._finding_verbs import VERBS, Id
from weighbridge.cli.exits import CLEAN, FINDINGS, REFUSED
from weighbridge.cli.open_findings import inside, lives, weighed, weighs
from weighbridge.cli.options import AsJson, Config, LogLevel, Month, Since, Until, check_range, parse_month
from weighbridge.cli.output import counted, write_json, write_line, write_table
from weighbridge.cli.session import home_of
from weighbridge.cli.tables import ID_DIGITS, in_full, measured, write_findings
from weighbridge.schemas.enumerations import FindingState, Severity

findings = typer.Typer(no_args_is_help=True, help="What was found, and what became of it.")


@findings.command("ls")
def ls(
    ctx: typer.Context,
    month: Month = None,
    since: Since = None,
    until: Until = None,
    severity: Annotated[Severity, typer.Option("--severity", help="At least this severe.")] = Severity.INFO,
    state: Annotated[FindingState | None, typer.Option("--state", help="Only in this state.")] = None,
    code: Annotated[str | None, typer.Option("--code", help="Only this code.")] = None,
    gate: Annotated[
        bool, typer.Option("--gate", help="Exit 3 where a listed one is open, at least a warning, and material.")
    ] = False,
    as_json: AsJson = False,
    config: Config = None,
    log_level: LogLevel = None,
) -> int:
    """List findings, worst first; exit 1 where a listed one is open and at least a warning.

    Whether one is material, and the line of the table [material] that says so, is in --json and in `show`.
    """
    from weighbridge.pipeline.audit.found import CODES as AUDIT_CODES
    from weighbridge.pipeline.baseline.found import CODES as BASELINE_CODES
    from weighbridge.pipeline.close.adjust import CODES as CLOSE_CODES
    from weighbridge.pipeline.engine.found import finding_codes as engine_codes
    from weighbridge.pipeline.invoice.findings import CODES as INVOICE_CODES
    from weighbridge.pipeline.probe.found import CODES as PROBE_CODES
    from weighbridge.pipeline.reconcile.found.codes import checked_code
    from weighbridge.pipeline.reconcile.life.material import Materiality
    from weighbridge.pipeline.retention.found import CODES as RETENTION_CODES
    from weighbridge.pipeline.run.sources import CODES as SOURCE_CODES
    from weighbridge.pipeline.validate.codes import CODES as VALIDATE_CODES

    check_range(since, until)
    home = home_of(ctx, config, log_level)
    lake = home.lake()
    if code is not None:
        others = {
            *AUDIT_CODES,
            *BASELINE_CODES,
            *CLOSE_CODES,
            *engine_codes(),
            *INVOICE_CODES,
            *PROBE_CODES,
            *RETENTION_CODES,
            *SOURCE_CODES,
            *VALIDATE_CODES,
        }
        checked_code(lake, code, others)
    scale = list(Severity)
    held = [
        row
        for row in weighed(lake, Materiality.of(home.settings.material))
        if inside(row, [month] if month else None, since, until)
        and scale.index(Severity(str(row["severity"]))) >= scale.index(severity)
        and state in {None, row["state"]}
        and code in {None, row["code"]}
    ]
    heavy = sum(map(weighs, held))
    holding = sum(weighs(row) and bool(row["material"]) for row in held)
    if as_json:
        write_json(held)
    else:
        write_findings(held)
        small = "" if holding == heavy else f", {holding} of them material"
        write_line(f"\n{counted(len(held), 'finding')}, {heavy} open and at least a warning{small}")
    if gate:
        return REFUSED if holding else CLEAN
    return FINDINGS if heavy else CLEAN


@findings.command("show")
def show(
    ctx: typer.Context, finding: Id, as_json: AsJson = False, config: Config = None, log_level: LogLevel = None
) -> int:
    """Show one finding with its evidence and its history; `explain` goes further down."""
    from weighbridge.pipeline.reconcile.life.material import Materiality
    from weighbridge.pipeline.reconcile.tree.prefix import one_of

    home = home_of(ctx, config, log_level)
    lake = home.lake()
    rows = {str(row["finding_id"]): row for row in weighed(lake, Materiality.of(home.settings.material))}
    row = rows[one_of(rows, finding, "finding")]
    changes = lake.scan("finding_status").collect().sort("finding_id", "change").to_dicts()
    history = [change for change in changes if change["finding_id"] == row["finding_id"]]
    if as_json:
        write_json(row | {"history": history})
        return CLEAN
    shown = row | {
        "difference": measured(row["difference"], row["unit"]),
        **{name: in_full(row[name], row["currency"]) for name in ("amount", "amount_low", "amount_high")},
        **{name: in_full(row[name], row["disputed_in"]) for name in ("disputed", "credited", "outstanding")},
    }
    hidden = {"unit", "currency", "changed_at", "changed_by", "expires_on", "disputed_in"}
    write_table(
        ["finding", ""], [[name, value] for name, value in shown.items() if name not in hidden and value is not None]
    )
    if history:
        write_line()
        names = ["state", "changed_at", "changed_by", "amount", "currency", "reference", "expires_on", "reason"]
        write_table(
            [name.replace("_", " ") for name in names], [[change[name] for name in names] for change in history]
        )
    return CLEAN


@findings.command("history")
def history(
    ctx: typer.Context,
    finding: Annotated[str | None, typer.Argument(metavar="[ID]", help="Of this finding; of all if left out.")] = None,
    as_json: AsJson = False,
    config: Config = None,
    log_level: LogLevel = None,
) -> int:
    """Show who decided what about findings, and when, oldest first."""
    from weighbridge.pipeline.reconcile.tree.prefix import one_of

    lake = home_of(ctx, config, log_level).lake()
    rows = lake.scan("finding_status").collect().sort("changed_at", "finding_id", "change").to_dicts()
    if finding is not None:
        known = {str(row["finding_id"]) for row in (*rows, *lives(lake))}
        only = one_of(known, finding, "finding")
        rows = [row for row in rows if row["finding_id"] == only]
    if as_json:
        write_json(rows)
    else:
        cells = [
            [
                row["changed_at"],
                row["changed_by"],
                str(row["finding_id"])[:ID_DIGITS],
                row["state"],
                measured(row["amount"], row["currency"]),
                *(row[name] for name in ("reference", "expires_on", "reason")),
            ]
            for row in rows
        ]
        write_table(["at", "by", "finding", "state", "amount", "reference", "expires on", "reason"], cells)
    return CLEAN


@findings.command("carry")
def carry(
    ctx: typer.Context,
    month: Annotated[str, typer.Argument(metavar="MONTH", parser=parse_month, help="The UTC month, YYYY-MM.")],
    as_json: AsJson = False,
    config: Config = None,
    log_level: LogLevel = None,
) -> int:
    """List what a month takes over: findings of earlier months that matter, and nobody is done with."""
    from weighbridge.pipeline.reconcile.life.carried import carried
    from weighbridge.pipeline.reconcile.life.material import Materiality

    home = home_of(ctx, config, log_level)
    policy = Materiality.of(home.settings.material)
    rows = carried(home.lake(), month, policy, datetime.now(UTC).date()).to_dicts()
    if as_json:
        write_json(rows)
    else:
        write_findings(rows)
        write_line(f"\n{counted(len(rows), 'finding')} carried into {month}; the period is the month of each")
    return CLEAN


@findings.command("sums")
def sums(ctx: typer.Context, as_json: AsJson = False, config: Config = None, log_level: LogLevel = None) -> int:
    """Show what is disputed, credited and outstanding, by provider and currency."""
    from weighbridge.pipeline.reconcile.life.disputes import disputes

    held = disputes(home_of(ctx, config, log_level).lake(), datetime.now(UTC).date())
    if as_json:
        write_json(held.to_dicts())
    else:
        write_table([name.replace("_", " ") for name in held.columns], held.rows())
    return CLEAN


@findings.command("pack")
def pack(
    ctx: typer.Context,
    finding: Id,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="PATH", help="What to write. Default: dispute-<id> here.")
    ] = None,
    zipped: Annotated[bool, typer.Option("--zip", help="One zip file instead of a folder.")] = False,
    foreign: Annotated[
        bool,
        typer.Option("--foreign-ids", help="Also what providers call the requests, so that they can look them up."),
    ] = False,
    as_json: AsJson = False,
    config: Config = None,
    log_level: LogLevel = None,
) -> int:
    """Write all that backs a finding into a pack for its provider: rows, prices, proofs; `verify` checks it offline.

    Where the month is closed, every row is led to its root. Reasons and names of users are not in it, nor is any text.
    """
    from weighbridge.pipeline.dispute.pack import write_dispute
    from weighbridge.pipeline.price.book import PriceBook
    from weighbridge.pipeline.reconcile.tree.prefix import one_of

    home = home_of(ctx, config, log_level)
    lake = home.lake()
    whole = one_of((str(row["finding_id"]) for row in lives(lake)), finding, "finding")
    name = out or Path(f"dispute-{whole[:ID_DIGITS]}")
    # A zip file without its suffix is none for `verify`, nor for whoever gets it.
    name = name.with_name(f"{name.name}.zip") if zipped and name.suffix.lower() != ".zip" else name
    book = PriceBook.load(home.settings.prices)
    done = write_dispute(lake, home.settings.closes, book, whole, name, zipped=zipped, foreign=foreign)
    told = {each: getattr(done, each) for each in ("path", "digest", "root", "rows", "proved")}
    if as_json:
        write_json(told)
    else:
        write_line(f"{done.path}: {counted(done.rows, 'row')}, {done.proved:,} of them proved by the root of the month")
        write_line(f"digest   {done.digest}" + (f"\nroot     {done.root}" if done.root else ""))
        write_line(f"Next: weighbridge verify {done.path}" + (f" --root {done.root}" if done.root else ""))
    return CLEAN


for _name, _verb in VERBS.items():
    findings.command(_name)(_verb)


COMMAND = Command("findings", findings, LOOK)
