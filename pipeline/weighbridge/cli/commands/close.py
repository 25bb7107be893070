"""`weighbridge close`: freeze a month."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from weighbridge.cli.command import WEIGH, Command
from weighbridge.cli.exits import CLEAN, REFUSED
from weighbridge.cli.options import AsJson, Config, LogLevel, parse_month
from weighbridge.cli.output import counted, write_json, write_line
from weighbridge.cli.session import home_of, user_name

if TYPE_CHECKING:
    from weighbridge.pipeline.close.close import CloseResult


def close(
    ctx: typer.Context,
    month: Annotated[str, typer.Argument(metavar="MONTH", parser=parse_month, help="The UTC month, YYYY-MM.")],
    force_early: Annotated[
        str | None,
        typer.Option("--force-early", metavar="REASON", help="Close it before its time; why, kept in the lake only."),
    ] = None,
    by: Annotated[
        str | None, typer.Option("--by", metavar="NAME", help="Who closes. Default: the user of this system.")
    ] = None,
    as_json: AsJson = False,
    config: Config = None,
    log_level: LogLevel = None,
) -> int:
    """Close a month: freeze its rows, its figures and all they rest on, and print the root to be kept elsewhere.

    What came late for months closed before is booked in it first. A closed month is never opened: run again, this
    changes nothing. Exit 3 where a gate refuses; each is named with what to do.
    """
    from weighbridge.pipeline.run.month import close_books

    home = home_of(ctx, config, log_level)
    done = close_books(home, month, by=by or user_name(), now=datetime.now(UTC), early=force_early)
    if as_json:
        write_json(_told(done))
    elif done.closed:
        _write(done)
    else:
        write_line(f"{month} was not closed.")
        for refusal in done.refused:
            write_line(f"\n{refusal.code}: {refusal.why}.\n  {refusal.cure}")
    return CLEAN if done.closed else REFUSED


def _told(done: CloseResult) -> dict[str, object]:
    refused = [{"code": each.code, "why": each.why, "cure": each.cure} for each in done.refused]
    names = ("period", "closed", "new", "pack", "root", "figures_digest", "rows")
    return {name: getattr(done, name) for name in names} | {"refused": refused}


def _write(done: CloseResult) -> None:
    state = "is closed" if done.new else "was closed before"
    write_line(f"{done.period} {state}: {counted(done.rows, 'row')}")
    write_line(f"root     {done.root}\nfigures  {done.figures_digest}")
    if done.pack is None:
        write_line("\nIts pack is not in the folder of closes: restore it from a backup.")
    else:
        write_line(f"pack     {done.pack}")
        write_line(f"\nKeep the root where nobody can change it.\nNext: weighbridge verify {done.period}")


COMMAND = Command("close", close, WEIGH, order=3)
