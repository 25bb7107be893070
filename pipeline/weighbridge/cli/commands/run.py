"""`weighbridge run`: the flows of the schedule, run here and now; Prefect shows how far they are."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from collections.abc import Mapping as Given
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weighbridge.cli.command import WEIGH, Command
from weighbridge.cli.commands.ingest import Day, Importer, Mapping
from weighbridge.cli.commands.nightly import Came
from weighbridge.cli.exits import CLEAN, FINDINGS, REFUSED, TERMINATED, complain
from weighbridge.cli.open_findings import weighty
from weighbridge.cli.options import AcceptClock, AsJson, Config, LogLevel, check_range, parse_day, parse_month
from weighbridge.cli.output import write_json, write_line, write_table
from weighbridge.cli.session import home_of, user_name

if TYPE_CHECKING:
    from weighbridge.pipeline.run.home import Home

run = typer.Typer(
    no_args_is_help=True,
    help="The flows of the schedule, here and now. Without a Prefect server a temporary one is started, for a trial.",
)
First = Annotated[date, typer.Option("--since", metavar="DAY", parser=parse_day, help="First UTC day, YYYY-MM-DD.")]
Last = Annotated[date, typer.Option("--until", metavar="DAY", parser=parse_day, help="Last UTC day, inclusive.")]
By = Annotated[
    str | None, typer.Option("--by", metavar="NAME", help="On whose behalf. Default: the user of this system.")
]
Flow = Callable[..., Any]


@run.command("nightly")
def nightly(
    ctx: typer.Context,
    paths: Came = None,
    day: Day = None,
    importer: Importer = None,
    mapping: Mapping = None,
    as_json: AsJson = False,
    config: Config = None,
    log_level: LogLevel = None,
) -> int:
    """Take in what came, then do whatever is due, as `weighbridge nightly` does; one task per day or month.

    Exit 1 where a finding of the months it worked on is open and at least a warning; exit 3 where a gate refused.
    """
    home = home_of(ctx, config, log_level)
    _settle(home)
    from weighbridge.dags.nightly import nightly as flow

    given = {"paths": paths, "day": day, "importer": importer, "mapping": mapping}
    return _told(home, flow, given, as_json=as_json)


@run.command("backfill")
def backfill(
    ctx: typer.Context,
    since: First,
    until: Last,
    release_again: Annotated[
        bool, typer.Option("--release-again", help="Also the shared edition of days that were released before.")
    ] = False,
    as_json: AsJson = False,
    config: Config = None,
    log_level: LogLevel = None,
) -> int:
    """Read, price, reconcile and report days of the past anew, with the dialects and prices of now.

    Safe to kill and to run again. Exit 1 where a finding of their months is open and at least a warning.
    """
    from weighbridge.pipeline.run.backfill import span_of

    check_range(since, until)
    home = home_of(ctx, config, log_level)
    span_of(since, until, datetime.now(UTC).date())  # what cannot be is said before anything is started
    _settle(home)
    from weighbridge.dags.backfill import backfill as flow

    return _told(home, flow, {"first": since, "last": until, "release_again": release_again}, as_json=as_json)


@run.command("monthly")
def monthly(
    ctx: typer.Context,
    month: Annotated[
        str | None,
        typer.Option(
            "--month",
            metavar="YYYY-MM",
            parser=parse_month,
            help="The UTC month. Default: those a schedule tries today.",
        ),
    ] = None,
    by: By = None,
    as_json: AsJson = False,
    config: Config = None,
    log_level: LogLevel = None,
) -> int:
    """Bring a month up to date with the dialects and prices of now, and close it.

    A month that is closed is left as it is. Without --month, months of the last year that are over and not closed are
    tried: each daily in the week after its days of grace, then weekly, but none that retention took rows of. Exit 3
    where a gate refuses; exit 1 where a finding of it is open and at least a warning.
    """
    home = home_of(ctx, config, log_level)
    _settle(home)
    from weighbridge.dags.monthly_close import monthly_close as flow

    return _told(home, flow, {"month": month, "by": by or user_name()}, as_json=as_json)


@run.command("retention")
def retention(
    ctx: typer.Context,
    by: By = None,
    accept_clock: AcceptClock = False,
    as_json: AsJson = False,
    config: Config = None,
    log_level: LogLevel = None,
) -> int:
    """Delete what is past its time from every place it has, with receipts. Safe to kill and to run again."""
    home = home_of(ctx, config, log_level)
    _settle(home)
    from weighbridge.dags.retention import retention as flow

    return _told(home, flow, {"by": by or user_name(), "accept_clock": accept_clock}, as_json=as_json)


def _settle(home: Home) -> None:
    """Say where Prefect is to keep its files before anything imports it.

    A temporary server is stopped when the interpreter ends in order, which a signal to stop has to lead to as well.
    """
    from weighbridge.dags.quiet import settle

    if settle(home.state):
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))


def _told(home: Home, flow: Flow, given: Given[str, object], *, as_json: bool) -> int:
    from weighbridge.pipeline.run.failure import GateRefusedError

    try:
        told = flow(config=home.root, **given)
    except GateRefusedError as error:
        complain(str(error))
        return REFUSED
    heavy = weighty(home.lake(), told["units"].get("reconcile", []))
    if as_json:
        write_json(told)
    else:
        _tell(told, heavy=heavy)
    return FINDINGS if heavy else CLEAN


def _tell(told: dict[str, Any], *, heavy: bool) -> None:
    rows = [(step, name, count) for step, counts in told["counts"].items() for name, count in counts.items()]
    if rows:
        write_table(["step", "what", "count"], rows)
    else:
        write_line("Nothing to do: these days have no rows, or no month is to be closed.")
    for path in told["files"]:
        write_line(path)
    if heavy:
        write_line("\nFindings that are at least a warning are open.\nNext: weighbridge findings ls")


COMMAND = Command("run", run, WEIGH, order=6)
