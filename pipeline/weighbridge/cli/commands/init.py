"""`weighbridge init`: make an installation."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from weighbridge.cli.command import SET_UP, Command
from weighbridge.cli.exits import CLEAN
from weighbridge.cli.options import AsJson, Config, LogLevel
from weighbridge.cli.output import write_json, write_line
from weighbridge.cli.session import begin


def init(
    ctx: typer.Context,
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder; made if it is not there.")],
    as_json: AsJson = False,
    config: Config = None,
    log_level: LogLevel = None,
) -> int:
    """Make an installation: settings, key and lake in one folder.

    What is there already is left as it is, so it is safe to run again.
    """
    from weighbridge.pipeline.run.home import init_home
    from weighbridge.pipeline.settings import FILE

    begin(ctx, config, log_level)
    home = init_home(folder)
    told = {
        "folder": home.root,
        "settings": home.root / FILE,
        "key_file": home.settings.key_file,
        "key_id": home.key_id,
        "lake": home.settings.lake,
    }
    if as_json:
        write_json(told)
        return CLEAN
    for name, value in told.items():
        write_line(f"{name.replace('_', ' '):<9} {value}")
    write_line("\nKeep a copy of the key file: without it new rows cannot be matched with old ones.")
    if home.root != Path.cwd():
        write_line(f"Next: cd {folder}")
        write_line("      weighbridge ingest FILE...")
    else:
        write_line("Next: weighbridge ingest FILE...")
    return CLEAN


COMMAND = Command("init", init, SET_UP)
