"""`weighbridge demo`: the main job on data made for it, and on real attempts of a tiny model where one can run."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from datetime import UTC, datetime
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
    from weighbridge.pipeline.run.live import LiveResult

DEFAULT = Path("out/demo")
SHOWN = 10  # findings, of which there are more than a screen holds


def demo(
    ctx: typer.Context,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder of the installation it makes.")] = DEFAULT,
    attempts: Annotated[int, typer.Option("--attempts", min=1, help="How many API calls.")] = 20_000,
    seed: Annotated[int, typer.Option("--seed", min=0, help="The same seed gives the same report.")] = 7,
    days: Annotated[int, typer.Option("--days", min=1, help="How many days from 2026-01-01.")] = 90,
    live: Annotated[
        bool | None,
        typer.Option(
            "--live/--no-live",
            help="Also serve real attempts on a tiny random model. Default: where torch and transformers are.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
    config: Config = None,
    log_level: LogLevel = None,
) -> int:
    """Run the main job on a simulated quarter with known faults.

    Exit 1 unless exactly those faults are found. Needs no installation, no key and no network: it makes an
    installation of its own. All of its data is simulated.

    The live part serves real attempts on loopback, under the agent, and explains where engine and usage differ.
    """
    from weighbridge.pipeline.run import live as served
    from weighbridge.pipeline.run.demo import demo as run
    from weighbridge.pipeline.run.live_servers import missing_packages

    begin(ctx, config, log_level)
    lacking = missing_packages()
    result = run(out, seed=seed, attempts=attempts, days=days)
    lived = served.live(out / f"live-{datetime.now(tz=UTC):%Y%m%dT%H%M%S}") if _wanted(live, lacking) else None
    good = result.as_expected and (lived is None or not lived.unexplained)
    if as_json:
        write_json(
            {
                "home": result.home.root,
                "reports": {month: files.html for month, files in result.reports.items()},
                "findings": result.findings.to_dicts(),
                "expected": len(result.expected),
                "missing": [item.code for item in result.missing],
                "unexpected": [item.code for item in result.unexpected],
                "live": None if lived is None else [asdict(row) for row in lived.weighed],
                "transformers_serve": None if lived is None else {"version": lived.serve, "left_out": lived.left_out},
            }
        )
        return CLEAN if good else FINDINGS
    _write(result)
    _write_live(lived, lacking)
    return CLEAN if good else FINDINGS


def _wanted(live: bool | None, lacking: list[str]) -> bool:
    return not lacking if live is None else live


def _write_live(lived: LiveResult | None, lacking: list[str]) -> None:
    """The attempts that were really served, per server and kind of call."""
    from weighbridge.pipeline.run.live_calls import NOT_SERVED, OWN, SERVE

    if lived is None:
        why = f"{', '.join(lacking)} not installed" if lacking else "not asked for"
        write_line(f"\nLIVE: left out, {why}.")
        return
    write_line(
        f"\nLIVE: {len(lived.weighed) // 2} real chat attempts in {lived.seconds:.0f} s on a tiny random model, on "
        "loopback. Computed at the engine, reported to\nthe client, recounted there from the text that arrived."
    )
    if lived.serve is not None:
        write_line(f"\nServed by `{SERVE}` {lived.serve}:\n")
        _write_served(lived, SERVE)
        write_line(f"\nServed by the product's own small server around generate(), for what `{SERVE}` does not do:")
        for kind, why in NOT_SERVED.items():
            write_line(f"  {kind}: {why}")
        write_line()
    else:
        write_line(f"\nServed by the product's own small server around generate(); `{SERVE}` took no part:")
        write_line(f"{lived.left_out}.\n")
    _write_served(lived, OWN)
    write_line(
        "\nEvery difference is explained by its cause, to the token; every recount is what was computed, without what "
        "was withheld."
        if not lived.unexplained
        else f"\nNOT AS EXPECTED: {len(lived.unexplained)} rows, see {lived.home.root}"
    )
    for month, files in lived.reports.items():
        write_line(f"report {month}: {files.html}")


def _write_served(lived: LiveResult, server: str) -> None:
    from weighbridge.pipeline.run.live_calls import as_frame

    frame = as_frame([row for row in lived.weighed if row.server == server]).drop("server")
    write_table(frame.columns, [list(row) for row in frame.iter_rows()])


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
