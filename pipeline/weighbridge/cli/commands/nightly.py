"""`weighbridge nightly`: the whole road in one command, as cron or systemd runs it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weighbridge.cli.command import WEIGH, Command
from weighbridge.cli.commands.ingest import Acks, Day, Importer, Mapping
from weighbridge.cli.exits import CLEAN, FINDINGS, REFUSED
from weighbridge.cli.open_findings import weighty
from weighbridge.cli.options import AsJson, Config, LogLevel, Timezone
from weighbridge.cli.output import write_json, write_line
from weighbridge.cli.session import home_of, show_progress
from weighbridge.cli.tables import account_of, packed_of, write_account, write_packed

if TYPE_CHECKING:
    from weighbridge.pipeline.run.night import Night

Came = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="[PATH]...", help="Files, sealed segments, or folders of them. Default: the spool.", exists=True
    ),
]
Wait = Annotated[
    int, typer.Option("--wait", metavar="MINUTES", min=0, help="How long to wait for another run to end. Default: not.")
]


def nightly(
    ctx: typer.Context,
    paths: Came = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Folder of the reports. Default: of the settings.")
    ] = None,
    day: Day = None,
    importer: Importer = None,
    mapping: Mapping = None,
    timezone: Timezone = None,
    acks: Acks = None,
    wait: Wait = 0,
    as_json: AsJson = False,
    config: Config = None,
    log_level: LogLevel = None,
) -> int:
    """Ingest, fetch from sources, validate, price, reconcile, judge baselines, adjust, release and report what is due.

    Sources are those of the settings. A closed month is not changed: what came late for it is an adjustment of the open
    one. Token ids that came are packed last.

    Safe to kill and to run again at any time: it goes on where the last run stopped, and what has not changed is left
    as it is. Exit 1 where a finding of the months of what was due, or of the installation, is open and at least a
    warning; exit 3 where a gate
    refused. At a terminal, and with --log-level info, each step is named on standard error as it begins.
    """
    from weighbridge.pipeline.run.night import Intake, night

    home = home_of(ctx, config, log_level, {"timezone": timezone, "acks": acks})
    intake = Intake(day=day or datetime.now(UTC).date(), importer=importer, mapping=mapping)
    show_progress()
    done = night(home, paths or [home.spool], intake, out=out, wait_s=60 * wait)
    heavy = weighty(home.lake(), done.months)
    if as_json:
        write_json(account_of(done.ingested) | _rest_of(done))
    else:
        _tell(done, heavy=heavy)
    if done.refused:
        return REFUSED
    return FINDINGS if heavy else CLEAN


def _rest_of(done: Night) -> dict[str, object]:
    return {
        "priced": done.priced,
        "months": done.months,
        "reports": done.reports,
        "token_ids": None if done.packed is None else packed_of(done.packed),
        "steps": {step: work.counts for step, work in done.work.items()},
        "refused": done.refused,
        "failed_sources": done.failed,
    }


def _tell(done: Night, *, heavy: bool) -> None:
    if done.ingested.files:
        write_account(done.ingested)
    for name, why in done.failed.items():
        write_line(f"the source {name} could not be fetched: {why}")
    for month, page in done.reports.items():
        write_line(f"report {month}: {page}")
    if done.refused:
        write_line(
            f"\nThe gate of `{done.refused}` refused this batch; nothing after it was done, and nothing is lost."
        )
        return
    write_packed(done.packed)
    if not done.months:
        write_line("\nNothing new: every file was taken in before, and everything that was due is done.")
    elif heavy:
        write_line("\nFindings that are at least a warning are open.\nNext: weighbridge findings ls")


COMMAND = Command("nightly", nightly, WEIGH, order=4)
