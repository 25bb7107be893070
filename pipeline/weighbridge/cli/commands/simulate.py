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
    misreport: Annotated[
        str | None,
        typer.Option(
            "--misreport", metavar="M0..M17", help="Instead: one cell, half its days honest, half misreported."
        ),
    ] = None,
    factor: Annotated[
        float | None, typer.Option("--factor", help="How much of the misreport; what it means depends on which it is.")
    ] = None,
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
    if misreport is not None:
        return _misreported(home.key, out, misreport, factor, attempts, seed, start or START, days, as_json=as_json)
    if factor is not None:
        raise typer.BadParameter("--factor goes with --misreport; name one, such as --misreport M5")
    made = write(out, attempts=attempts, seed=seed, start=start or START, days=days, key=home.key, faults=faults)
    if as_json:
        write_json({"segments": made.segments, "expected": len(made.expected), "labels": made.labels})
    else:
        write_line(f"{attempts:,} simulated attempts over {days} days in {len(made.segments)} segments")
        write_line(f"{len(made.expected)} expected findings in {out / 'expected.json'}")
        write_line(f"Next: weighbridge ingest {out}")
    return CLEAN


def _misreported(
    key: bytes,
    out: Path,
    code: str,
    factor: float | None,
    attempts: int,
    seed: int,
    start: date,
    days: int,
    *,
    as_json: bool,
) -> int:
    from weighbridge.pipeline.simulate.misreport import misreport_of
    from weighbridge.pipeline.simulate.misreported import write_misreported

    kind = misreport_of(code)
    used = kind.factor if factor is None else factor
    made = write_misreported(out, kind, factor=used, attempts=attempts, seed=seed, start=start, days=days, key=key)
    honest = f"{made.honest[0]}..{made.honest[1]}"
    if as_json:
        write_json(
            {
                "segments": made.segments,
                "misreport": kind.code,
                "factor": used,
                "expected": kind.expected,
                "honest": honest,
            }
        )
        return CLEAN
    write_line(f"{kind.code}, {kind.title}: {kind.means} {used:g}; amounts are rounded so: {kind.rounding}")
    write_line(f"{attempts:,} answers, honest on {honest}, misreported from {made.misreported[0]} on")
    write_line(f"an audit has to name: {kind.expected or 'nothing'}")
    write_line(
        f"Next: weighbridge ingest {out}\n      weighbridge reconcile\n      weighbridge audit --calibrate {honest}"
    )
    return CLEAN


COMMAND = Command("simulate", simulate, SET_UP, order=2)
