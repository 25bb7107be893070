"""`weighbridge nightly`: the whole road in one command, as a scheduler runs it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from weighbridge.cli.command import WEIGH, Command
from weighbridge.cli.commands.ingest import Acks, Day, Importer, Mapping, Paths
from weighbridge.cli.exits import CLEAN, FINDINGS
from weighbridge.cli.open_findings import weighty
from weighbridge.cli.options import AsJson, Config, LogLevel, Timezone
from weighbridge.cli.output import write_json, write_line
from weighbridge.cli.session import home_of
from weighbridge.cli.tables import account_of, packed_of, write_account, write_packed


def nightly(
    ctx: typer.Context,
    paths: Paths,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Folder of the reports. Default: of the settings.")
    ] = None,
    day: Day = None,
    importer: Importer = None,
    mapping: Mapping = None,
    timezone: Timezone = None,
    acks: Acks = None,
    as_json: AsJson = False,
    config: Config = None,
    log_level: LogLevel = None,
) -> int:
    """Ingest, price, reconcile and report the months the files touch, and pack the token ids that came.

    Safe to run again at any time: what is there already is left as it is. Exit 1 where a finding of these months is
    open and at least a warning.
    """
    from weighbridge.pipeline.run.night import Intake, night

    home = home_of(ctx, config, log_level, {"timezone": timezone, "acks": acks})
    intake = Intake(day=day or datetime.now(UTC).date(), importer=importer, mapping=mapping)
    done = night(home, paths, intake, out=out)
    heavy = weighty(home.lake(), done.months)
    if as_json:
        reports = {month: files.html for month, files in done.reports.items()}
        packed = None if done.packed is None else packed_of(done.packed)
        write_json(
            account_of(done.ingested)
            | {"priced": done.priced, "months": done.months, "reports": reports, "token_ids": packed}
        )
    else:
        write_account(done.ingested)
        for month, files in done.reports.items():
            write_line(f"report {month}: {files.html}")
        write_packed(done.packed)
        if not done.months:
            write_line("\nNothing new: every file was taken in before.")
        elif heavy:
            write_line("\nFindings that are at least a warning are open.\nNext: weighbridge findings ls")
    return FINDINGS if heavy else CLEAN


COMMAND = Command("nightly", nightly, WEIGH, order=4)
