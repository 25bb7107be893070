"""`weighbridge changes`: who changed prices, mappings and settings, with the values before and after."""

from __future__ import annotations

from typing import Annotated

import typer

from weighbridge.cli.command import LOOK, Command
from weighbridge.cli.exits import CLEAN
from weighbridge.cli.options import AsJson, Config, LogLevel, Since
from weighbridge.cli.output import counted, write_json, write_line, write_table
from weighbridge.cli.session import home_of
from weighbridge.schemas.enumerations import ConfigKind

_SHOWN = ("at", "by", "kind", "file", "key", "before", "after")


def changes(
    ctx: typer.Context,
    since: Since = None,
    kind: Annotated[ConfigKind | None, typer.Option("--kind", help="Only of this kind.")] = None,
    as_json: AsJson = False,
    config: Config = None,
    log_level: LogLevel = None,
) -> int:
    """Show who changed what is configured, oldest first: prices, mappings, settings; before and after.

    A run writes a change down when it notices it. What was there when a file was first seen has no value before. A long
    value stands as its digest, and one that may be a secret as a digest that is made with the installation's key.
    """
    import polars as pl

    rows = home_of(ctx, config, log_level).lake().scan("change").sort("number")
    if since is not None:
        rows = rows.filter(pl.col("at").dt.date() >= since)
    if kind is not None:
        rows = rows.filter(pl.col("kind") == str(kind))
    found = rows.collect().to_dicts()
    if as_json:
        write_json(found)
    else:
        write_table(_SHOWN, [[row[name] for name in _SHOWN] for row in found])
        write_line(f"\n{counted(len(found), 'change')}")
    return CLEAN


COMMAND = Command("changes", changes, LOOK, order=4)
