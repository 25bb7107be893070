"""`weighbridge digest`: canonical digests of the tables."""

from __future__ import annotations

from typing import Annotated

import typer

from weighbridge.cli.command import CHECK, Command
from weighbridge.cli.exits import CLEAN
from weighbridge.cli.options import AsJson, Config, LogLevel
from weighbridge.cli.output import write_json, write_table
from weighbridge.cli.session import home_of


def digest(
    ctx: typer.Context,
    tables: Annotated[
        list[str] | None, typer.Argument(metavar="[TABLE]...", help="All that have rows if left out.")
    ] = None,
    as_json: AsJson = False,
    config: Config = None,
    log_level: LogLevel = None,
) -> int:
    """Print the canonical digest of each table.

    Equal digests mean the same rows, whatever files they lie in and in whatever order they came.
    """
    from weighbridge.schemas.errors import ConfigError
    from weighbridge.schemas.tables import TABLES

    for name in tables or ():
        if name not in TABLES:
            raise ConfigError(f"there is no table {name!r}; known are {', '.join(TABLES)}")
    lake = home_of(ctx, config, log_level).lake()
    names = tables or [name for name in TABLES if lake.rows(name)]
    found = {name: {"rows": lake.rows(name), "sha256": lake.digest(name)} for name in names}
    if as_json:
        write_json(found)
    else:
        write_table(["table", "rows", "sha256"], [[name, item["rows"], item["sha256"]] for name, item in found.items()])
    return CLEAN


COMMAND = Command("digest", digest, CHECK, order=2)
