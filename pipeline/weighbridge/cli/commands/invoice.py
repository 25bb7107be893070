"""`weighbridge invoice`: bills of providers, held against what our own priced usage says they should be."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated

import typer

from weighbridge.cli.command import WEIGH, Command
from weighbridge.cli.exits import CLEAN, FINDINGS
from weighbridge.cli.open_findings import weighty
from weighbridge.cli.options import AsJson, Config, LogLevel, Month, parse_day
from weighbridge.cli.output import counted, write_json, write_line, write_table
from weighbridge.cli.session import home_of
from weighbridge.cli.tables import account_of, measured, write_account

invoice = typer.Typer(no_args_is_help=True, help="Bills of providers beside our own priced usage.")
_GAP = (
    "period",
    "day",
    "provider",
    "against",
    "kind",
    "model",
    "token_class",
    "expected",
    "charged",
    "gap",
    "residual",
    "status",
)


@invoice.command("import")
def import_(
    ctx: typer.Context,
    paths: Annotated[list[Path], typer.Argument(metavar="PATH...", help="Bills, or folders of them.", exists=True)],
    provider: Annotated[
        str | None, typer.Option("--provider", help="Who charges, where the file names nobody.")
    ] = None,
    mapping: Annotated[
        Path | None,
        typer.Option("--mapping", metavar="FILE", help="What the columns of a bill mean.", dir_okay=False, exists=True),
    ] = None,
    day: Annotated[
        date | None,
        typer.Option("--day", metavar="DAY", parser=parse_day, help="UTC day of the import. Default: today."),
    ] = None,
    account: Annotated[
        str | None,
        typer.Option("--account", help="Whose bills these are, where they name no account; kept as a pseudonym."),
    ] = None,
    revision: Annotated[
        bool,
        typer.Option("--revision", help="Cost pages are later fetches of bills that were taken in, whatever they say."),
    ] = False,
    whole: Annotated[
        bool,
        typer.Option("--whole", help="These files hold their invoices whole: withdraw lines that are missing."),
    ] = False,
    as_json: AsJson = False,
    config: Config = None,
    log_level: LogLevel = None,
) -> int:
    """Take in bills, cost and usage pages, invoice details and rates of currencies; the same as `ingest` of them.

    Exit 1 where rows went to quarantine, or a file holds no line at all.
    """
    from weighbridge.pipeline.run.bills import missing_withdrawn, without_lines
    from weighbridge.pipeline.run.rooms import Intake, take_in

    home = home_of(ctx, config, log_level)
    intake = Intake(
        day=day or datetime.now(UTC).date(),
        provider=provider,
        mapping=mapping,
        account=account,
        revision=revision or whole,
    )
    result = take_in(home, paths, intake)
    left = missing_withdrawn(home, paths, intake) if whole else None
    empty = without_lines(home, result)
    if as_json:
        told = {} if left is None else {"withdrawn": left.gone, "returned": left.back, "whole": left.whole}
        write_json({**account_of(result), **told, "without_lines": empty})
    else:
        write_account(result)
        if left is not None and left.whole:
            write_line(f"\n{left.gone} lines withdrawn, {left.back} came back.")
        elif left is not None:
            write_line("\nNothing was withdrawn: a record could not be read or a page is missing, so nothing is whole.")
        if empty:
            write_line(f"\nwithout any line: {', '.join(empty)}; fetch them again, nothing of them can be compared")
        write_line("\nNext: weighbridge invoice reconcile")
    return FINDINGS if empty or any(file.rows_quarantined for file in result.files) else CLEAN


@invoice.command("reconcile")
def reconcile(
    ctx: typer.Context, month: Month = None, as_json: AsJson = False, config: Config = None, log_level: LogLevel = None
) -> int:
    """Hold bills and usage pages against our priced usage, and explain every difference.

    Usage is priced anew first. Exit 1 where a finding of these months is open and at least a warning.
    """
    from weighbridge.pipeline.run.bills import weigh_bills
    from weighbridge.pipeline.run.rooms import set_prices

    home = home_of(ctx, config, log_level)
    set_prices(home, home.lake().days("reading"))
    result = weigh_bills(home, datetime.now(UTC), month)
    if as_json:
        told = [{"period": p, "provider": name, "against": against} for p, name, against in result.months]
        found = [finding.row() for finding in result.findings]
        write_json({"months": told, "statuses": result.statuses, "causes": result.causes, "findings": found})
    else:
        write_table(["month", "provider", "held against"], [list(each) for each in result.months])
        write_table(["cells", "number"], list(result.statuses.items()))
        write_line(f"\n{counted(len(result.findings), 'finding')}; next: weighbridge invoice show")
    months = {period for period, *_ in result.months}
    return FINDINGS if months and weighty(home.lake(), months) else CLEAN


@invoice.command("show")
def show(
    ctx: typer.Context,
    month: Month = None,
    provider: Annotated[str | None, typer.Option("--provider", help="Only this provider.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Cells that match, too.")] = False,
    as_json: AsJson = False,
    config: Config = None,
    log_level: LogLevel = None,
) -> int:
    """Show cells: what was expected, what was charged, and why they differ. Exit 1 where a cell is unexplained."""
    from weighbridge.pipeline.run.bills import cells_of

    cells = cells_of(home_of(ctx, config, log_level), month, provider, every=every)
    if as_json:
        write_json(cells)
    else:
        write_table(
            [*_GAP, "unit", "also by", "causes"],
            [[*(cell[name] for name in _GAP), cell["unit"], _also_by(cell), _causes(cell)] for cell in cells],
        )
        write_line(f"\n{counted(len(cells), 'cell')}")
    return FINDINGS if any(cell["status"] == "UNEXPLAINED" for cell in cells) else CLEAN


def _also_by(cell: Mapping[str, object]) -> str:
    """What a cell is of beside model and class, where the bill states it."""
    names = ("tenant", "service_tier", "region", "modality")
    return ", ".join(str(cell[name]) for name in names if cell[name] is not None)


def _causes(cell: Mapping[str, object]) -> str:
    held = cell["causes"]
    named = held if isinstance(held, list) else []
    return "; ".join(f"{each['cause']} {measured(each['amount'], cell['unit'])}" for each in named)


@invoice.command("accrual")
def accrual(ctx: typer.Context, as_json: AsJson = False, config: Config = None, log_level: LogLevel = None) -> int:
    """Show, by month and provider, what was used, what of it was invoiced, and what is still to come on a bill."""
    from weighbridge.pipeline.run.bills import accrued

    rows = accrued(home_of(ctx, config, log_level))
    names = ("period", "provider", "currency", "expected", "invoiced", "accrued", "other", "open_cells")
    told = [{name: getattr(row, name) for name in names} for row in rows]
    if as_json:
        write_json(told)
    else:
        write_table(list(names), [list(row.values()) for row in told])
    return CLEAN


COMMAND = Command("invoice", invoice, WEIGH, order=3)
