"""`weighbridge report`: the page, the workbook and the tables of a period."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weighbridge.cli.command import WEIGH, Command
from weighbridge.cli.exits import CLEAN
from weighbridge.cli.options import AsJson, Config, LogLevel, Month, Since, Timezone, Until, check_range
from weighbridge.cli.output import write_json, write_line
from weighbridge.cli.session import home_of

if TYPE_CHECKING:
    from weighbridge.pipeline.lake import Lake


def report(
    ctx: typer.Context,
    month: Month = None,
    since: Since = None,
    until: Until = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Folder to write to. Default: of the settings.")
    ] = None,
    title: Annotated[str | None, typer.Option("--title", help="Heading of the report.")] = None,
    edition: Annotated[
        str, typer.Option("--edition", metavar="NAME", help="billing, or shared: for everybody, from histograms alone.")
    ] = "billing",
    timezone: Timezone = None,
    as_json: AsJson = False,
    config: Config = None,
    log_level: LogLevel = None,
) -> int:
    """Write the report: one HTML page, one workbook, a folder of CSV tables.

    Without a period, one report is written for each month the lake has. The same lake gives the same bytes. Closed
    months are told as they were closed.
    """
    from weighbridge.pipeline.report.report import write_report
    from weighbridge.pipeline.run.rooms import closes_for, is_simulated, months_told, records_of
    from weighbridge.schemas.errors import ConfigError

    check_range(since, until)
    home = home_of(ctx, config, log_level, {"timezone": timezone, "title": title})
    lake, settings = home.lake(), home.settings
    if month is not None:
        _check_month(lake, month, edition, settings.timezone)
    periods = [month] if month or since or until else list(months_told(lake, edition))
    if not periods:
        raise ConfigError(
            "the lake has nothing to tell in this edition yet; take files in with `weighbridge ingest`, run "
            "`weighbridge nightly`, or name a --month"
        )
    written = [
        write_report(
            records_of(home, each, since, until),
            month=each,
            first=since,
            last=until,
            out=out or home.reports,
            zone=settings.timezone,
            title=settings.title,
            simulated=is_simulated(lake),
            edition=edition,
            closes=closes_for(home, each) if each else None,
        )
        for each in periods
    ]
    if as_json:
        write_json(
            [
                {"html": files.html, "xlsx": files.xlsx, "csv": files.csv_dir, "digest": files.digest}
                for files in written
            ]
        )
        return CLEAN
    for files in written:
        write_line(f"{files.html}\n{files.xlsx}\n{files.csv_dir}\nfigures {files.digest}\n")
    return CLEAN


def _check_month(lake: Lake, month: str, edition: str, zone: str) -> None:
    """Refuse a month of which nothing is known: a page without figures would look like a month without traffic."""
    from weighbridge.pipeline.close.closed import closes
    from weighbridge.pipeline.report.report import SHARED
    from weighbridge.pipeline.run.rooms import months_told
    from weighbridge.pipeline.run.steps.report import months_to_report
    from weighbridge.schemas.errors import ConfigError

    months = months_told(lake, edition) if edition == SHARED else months_to_report(lake, zone)
    told = {*months, *closes(lake)}
    if month in told or month in set(lake.scan("finding", columns=["period"]).collect()["period"]):
        return
    has = f"it has {min(told)} to {max(told)}" if told else "it has none"
    raise ConfigError(f"the lake has nothing of {month}; {has}. Name one of these months, or ingest its files first.")


COMMAND = Command("report", report, WEIGH, order=2)
