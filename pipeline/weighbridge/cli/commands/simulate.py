"""`weighbridge simulate`: write made-up traffic as sealed segments."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Annotated

import typer

from weighbridge.cli.command import SET_UP, Command
from weighbridge.cli.exits import CLEAN
from weighbridge.cli.options import AsJson, Config, LogLevel, parse_day
from weighbridge.cli.output import write_json, write_line
from weighbridge.cli.session import home_of


def simulate(
    ctx: typer.Context,
    out: Annotated[Path, typer.Argument(metavar="DIR", help="Folder for the segments; it must hold none yet.")],
    attempts: Annotated[int, typer.Option("--attempts", min=1, help="How many API calls.")] = 20_000,
    seed: Annotated[int, typer.Option("--seed", min=0, help="The same seed gives the same bytes.")] = 7,
    start: Annotated[
        date | None, typer.Option("--start", metavar="DAY", parser=parse_day, help="First day. Default: 2026-01-01.")
    ] = None,
    days: Annotated[int, typer.Option("--days", min=1, help="How many days.")] = 90,
    faults: Annotated[bool, typer.Option("--faults/--no-faults", help="Put known faults in.")] = True,
    as_json: AsJson = False,
    config: Config = None,
    log_level: LogLevel = None,
) -> int:
    """Write made-up traffic with known faults, for `ingest`.

    Everything is labelled as simulated. The findings that reconciliation has to come to stand in `expected.json`
    beside the segments. Names are hidden with the pseudonym key of the installation, so ingest them into the same one.
    """
    from weighbridge.pipeline.simulate.simulate import START
    from weighbridge.pipeline.simulate.simulate import simulate as write

    home = home_of(ctx, config, log_level)
    made = write(out, attempts=attempts, seed=seed, start=start or START, days=days, key=home.key, faults=faults)
    if as_json:
        write_json({"segments": made.segments, "expected": len(made.expected), "labels": made.labels})
    else:
        write_line(f"{attempts:,} simulated attempts over {days} days in {len(made.segments)} segments")
        write_line(f"{len(made.expected)} expected findings in {out / 'expected.json'}")
        write_line(f"Next: weighbridge ingest {out}")
    return CLEAN


COMMAND = Command("simulate", simulate, SET_UP, order=2)
