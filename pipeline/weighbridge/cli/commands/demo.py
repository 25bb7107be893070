"""`weighbridge demo`: the main job on data made for it, held against the faults that were put in."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from weighbridge.cli.command import SET_UP, Command
from weighbridge.cli.exits import CLEAN, FINDINGS
from weighbridge.cli.options import AsJson, Config, LogLevel
from weighbridge.cli.output import write_json, write_line
from weighbridge.cli.session import begin
from weighbridge.cli.tables import write_findings

DEFAULT = Path("out/demo")


def demo(
    ctx: typer.Context,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder of the installation it makes.")] = DEFAULT,
    attempts: Annotated[int, typer.Option("--attempts", min=1, help="How many API calls.")] = 20_000,
    seed: Annotated[int, typer.Option("--seed", min=0, help="The same seed gives the same report.")] = 7,
    days: Annotated[int, typer.Option("--days", min=1, help="How many days from 2026-01-01.")] = 90,
    as_json: AsJson = False,
    config: Config = None,
    log_level: LogLevel = None,
) -> int:
    """Run the main job on a simulated quarter with known faults.

    Exit 1 unless exactly those faults are found. Needs no installation, no key and no network: it makes an
    installation of its own. All of its data is simulated.
    """
    from weighbridge.pipeline.run.demo import demo as run

    begin(ctx, config, log_level)
    result = run(out, seed=seed, attempts=attempts, days=days)
    if as_json:
        write_json(
            {
                "home": result.home.root,
                "reports": {month: files.html for month, files in result.reports.items()},
                "findings": result.findings.to_dicts(),
                "expected": len(result.expected),
                "missing": [item.code for item in result.missing],
                "unexpected": [item.code for item in result.unexpected],
            }
        )
        return CLEAN if result.as_expected else FINDINGS
    write_line("SIMULATED DATA: a made-up quarter with known faults.\n")
    write_findings(result.findings.sort("period", "code", "provider", "model").to_dicts())
    write_line()
    for code, count in sorted(Counter(item.code for item in result.expected).items()):
        write_line(f"{count:>4} expected {code}")
    write_line(
        f"\nAll {len(result.expected)} expected findings were found exactly, and no other."
        if result.as_expected
        else f"\nNOT AS EXPECTED: {len(result.missing)} missing, {len(result.unexpected)} unexpected."
    )
    for month, files in result.reports.items():
        write_line(f"report {month}: {files.html}")
    write_line(f"\nLook around: weighbridge findings ls --config {result.home.root}")
    return CLEAN if result.as_expected else FINDINGS


COMMAND = Command("demo", demo, SET_UP, order=1)
