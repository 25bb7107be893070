"""`weighbridge ingest`: take in files and sealed segments."""

from __future__ import annotations

import logging
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weighbridge.cli.command import WEIGH, Command
from weighbridge.cli.exits import CLEAN, FINDINGS
from weighbridge.cli.options import AsJson, Config, LogLevel, Since, Until, check_range, parse_day
from weighbridge.cli.output import counted, write_json, write_line
from weighbridge.cli.session import home_of
from weighbridge.cli.tables import account_of, write_account

if TYPE_CHECKING:
    from weighbridge.pipeline.ingest.ingest import IngestResult

Paths = Annotated[
    list[Path] | None,
    typer.Argument(metavar="[PATH]...", help="Files, sealed segments, or folders of them.", exists=True),
]
From = Annotated[
    str | None, typer.Option("--from", metavar="SYSTEM", help="Instead of files: a database, litellm is known.")
]
Day = Annotated[
    date | None,
    typer.Option("--day", metavar="DAY", parser=parse_day, help="UTC day of records without a time. Default: today."),
]
Importer = Annotated[
    str | None, typer.Option("--importer", help="Which importer reads them; recognised by content if left out.")
]
Mapping = Annotated[
    Path | None,
    typer.Option("--mapping", metavar="FILE", help="What the columns mean (TOML).", dir_okay=False, exists=True),
]
Provider = Annotated[str | None, typer.Option("--provider", help="Provider of records that name none.")]
Model = Annotated[str | None, typer.Option("--model", help="Model of records that name none.")]
Tenant = Annotated[str | None, typer.Option("--tenant", help="Tenant of records that name none; kept as a pseudonym.")]
Acks = Annotated[
    str | None,
    typer.Option(
        "--acks", metavar="DIR", help="Where segments are acknowledged. Default: the settings, or beside each."
    ),
]
Task = Annotated[str | None, typer.Option("--task", help="Task type of records that name none.")]

LITELLM = "litellm"
_NAMED = 5  # empty files that are named
_log = logging.getLogger("weighbridge.cli")


def ingest(
    ctx: typer.Context,
    paths: Paths = None,
    database: From = None,
    since: Since = None,
    until: Until = None,
    day: Day = None,
    importer: Importer = None,
    mapping: Mapping = None,
    provider: Provider = None,
    model: Model = None,
    tenant: Tenant = None,
    task: Task = None,
    acks: Acks = None,
    as_json: AsJson = False,
    config: Config = None,
    log_level: LogLevel = None,
) -> int:
    """Take in files, or rows of a database: read their usage, price it, account for every row.

    The same file twice changes nothing, nor do the same rows. No text of a prompt or an answer is kept.
    `--from litellm` goes on where the last one ended; the settings say where the database is. Exit 1 where rows went
    to quarantine.
    """
    from weighbridge.pipeline.run.changes import notice
    from weighbridge.pipeline.run.pull import pull_in
    from weighbridge.pipeline.run.rooms import Intake, made_of, priced_in, set_prices, take_in

    _check_input(paths, database, since, until, importer, mapping)

    home = home_of(ctx, config, log_level, {"acks": acks})
    intake = Intake(
        day=day or datetime.now(UTC).date(),
        importer=importer,
        mapping=mapping,
        provider=provider,
        model=model,
        tenant=tenant,
        task=task,
    )
    if paths:
        result = take_in(home, paths, intake)
    else:
        result = pull_in(home, intake, since=_start_of(since), until=_end_of(until)).result
    # What is refused leaves no trace, not in the log of changes either.
    notice(home, datetime.now(UTC), mappings=[] if mapping is None else [mapping])
    _log.info("%d files on %d days; pricing", len(result.files), len(result.days))
    set_prices(home, result.days)
    priced, made = priced_in(home, result.days), made_of(home, result)
    unread = any(file.rows_quarantined for file in result.files)
    if as_json:
        of_files = {"readings": made.readings, "priced": made.priced}
        write_json(account_of(result) | {"priced": priced, "of_files": of_files})
    else:
        write_account(result)
        if result.files and all(file.skipped for file in result.files):
            write_line("\nNothing new: every file was taken in before.")
        else:
            write_line(f"\nfrom what was given: {counted(made.readings, 'reading')}, {made.priced:,} of them priced")
        if result.days:
            write_line(
                f"{counted(len(result.days), 'day')} touched, read and priced anew: "
                f"{counted(result.readings, 'reading')} there now, {priced:,} of them priced"
            )
        _say_empty(result)
        if unread:
            write_line("Rows in quarantine could not be read: `weighbridge quarantine ls` says why and where.")
        write_line("Next: weighbridge reconcile")
    return FINDINGS if unread else CLEAN


def _say_empty(result: IngestResult) -> None:
    """Name files that hold no record: nothing went wrong, and nothing came of them."""
    empty = [file.name for file in result.files if not file.rows_in and not file.skipped]
    if empty:
        more = f" and {len(empty) - _NAMED:,} more" if len(empty) > _NAMED else ""
        write_line(f"without any record: {', '.join(empty[:_NAMED])}{more}")


def _check_input(
    paths: list[Path] | None,
    database: str | None,
    since: date | None,
    until: date | None,
    importer: str | None,
    mapping: Path | None,
) -> None:
    """Refuse what does not go together."""
    if bool(paths) == (database is not None):
        raise typer.BadParameter("name files to take in, or a system with --from; one of the two")
    if database not in {None, LITELLM}:
        raise typer.BadParameter(f"--from {database} is not known; {LITELLM} is")
    if paths and (since or until):
        raise typer.BadParameter("--since and --until go with --from: of a file every record is taken")
    if database and (importer or mapping):
        raise typer.BadParameter("--importer and --mapping go with files; what a database holds is known")
    check_range(since, until)


def _start_of(day: date | None) -> datetime | None:
    return None if day is None else datetime(day.year, day.month, day.day, tzinfo=UTC)


def _end_of(day: date | None) -> datetime | None:
    start = _start_of(day)
    return None if start is None else start + timedelta(days=1)


COMMAND = Command("ingest", ingest, WEIGH)
