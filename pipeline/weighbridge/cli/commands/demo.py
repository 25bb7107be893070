"""`weighbridge demo`: the main job on data made for it, held against the faults that were put in."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weighbridge.cli.command import SET_UP, Command
from weighbridge.cli.exits import CLEAN, FINDINGS
from weighbridge.cli.open_findings import worst_first
from weighbridge.cli.options import AsJson, Config, LogLevel
from weighbridge.cli.output import write_json, write_line, write_table
from weighbridge.cli.session import begin
from weighbridge.cli.tables import measured, write_findings
from weighbridge.schemas.enumerations import Severity

if TYPE_CHECKING:
    from weighbridge.pipeline.run.demo import DemoResult

DEFAULT = Path("out/demo")
SHOWN = 10  # findings, of which there are more than a screen holds


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
    _write(result)
    return CLEAN if result.as_expected else FINDINGS


def _write(result: DemoResult) -> None:
    write_line("SIMULATED DATA: a made-up quarter with known faults.\n")
    _write_codes(result)
    found = worst_first(result.findings.to_dicts())
    write_line(f"\nThe {min(SHOWN, len(found))} that matter most:")
    write_findings(found[:SHOWN])
    write_line(
        f"\nAll {len(result.expected)} expected findings were found exactly, and no other."
        if result.as_expected
        else f"\nNOT AS EXPECTED: {len(result.missing)} missing, {len(result.unexpected)} unexpected."
    )
    write_line(f"\nAll of them: weighbridge findings ls --config {result.home.root}\n")
    for month, files in result.reports.items():
        write_line(f"report {month}: {files.html}")


def _write_codes(result: DemoResult) -> None:
    """Per kind of fault: what was put in beside what was found."""
    expected = Counter(item.code for item in result.expected)
    found: dict[str, list[dict[str, Any]]] = {}
    for row in result.findings.to_dicts():
        found.setdefault(row["code"], []).append(row)
    write_table(
        ["finding", "severity", "expected", "found", "rows", "difference"],
        [
            [
                code,
                max((row["severity"] for row in found.get(code, [])), key=list(Severity).index, default=None),
                expected[code],
                len(found.get(code, [])),
                sum(row["rows"] for row in found.get(code, [])),
                measured(*_difference(found.get(code, []))),
            ]
            for code in sorted({*expected, *found})
        ],
    )


def _difference(rows: list[dict[str, Any]]) -> tuple[int | None, str | None]:
    known = [row["difference"] for row in rows if row["difference"] is not None]
    return (sum(known), rows[0]["unit"]) if known else (None, None)


COMMAND = Command("demo", demo, SET_UP, order=1)
