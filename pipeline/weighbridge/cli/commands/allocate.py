"""`weighbridge allocate`: which team bears what of a month."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from weighbridge.cli.command import WEIGH, Command
from weighbridge.cli.exits import CLEAN, FINDINGS
from weighbridge.cli.options import AsJson, Config, LogLevel, parse_month
from weighbridge.cli.output import write_json, write_table
from weighbridge.cli.session import home_of

_NAMES = ("pool", "basis", "team", "allocated_as", "provider", "tokens", "amount", "currency", "rows")


def allocate(
    ctx: typer.Context,
    month: Annotated[
        str | None, typer.Option("--month", metavar="YYYY-MM", parser=parse_month, help="UTC month. Default: this one.")
    ] = None,
    as_json: AsJson = False,
    config: Config = None,
    log_level: LogLevel = None,
) -> int:
    """Give usage, shared costs and own machines of a month to teams, to the cent.

    Exit 1 where something is unassigned.
    """
    from weighbridge.pipeline.run.bills import bear

    done = bear(home_of(ctx, config, log_level), month or f"{datetime.now(UTC):%Y-%m}")
    if as_json:
        write_json(list(done.rows))
    else:
        write_table(list(_NAMES), [[row[name] for name in _NAMES] for row in done.rows])
    return FINDINGS if any(row["allocated_as"] == "unassigned" for row in done.rows) else CLEAN


COMMAND = Command("allocate", allocate, WEIGH, order=4)
