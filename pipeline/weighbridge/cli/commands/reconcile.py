"""`weighbridge reconcile`: explain the gap between what was observed and what was reported."""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import asdict, astuple
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated

import typer

from weighbridge.cli.command import WEIGH, Command
from weighbridge.cli.exits import CLEAN, FINDINGS
from weighbridge.cli.open_findings import weighty
from weighbridge.cli.options import AsJson, AsOf, Config, EngineName, LogLevel, Month
from weighbridge.cli.output import write_json, write_line, write_table
from weighbridge.cli.session import home_of, show_progress
from weighbridge.schemas.enumerations import Status

if TYPE_CHECKING:
    from weighbridge.pipeline.lake import Lake

_ONE_SIDE = (
    "Nothing was compared: of every attempt one side is here, what was reported or what was observed. The observed "
    "side comes from the capture agent (docs/capture.md), or from counts of your own as a table (docs/importing.md)."
)
_log = logging.getLogger("weighbridge.cli")


def reconcile(
    ctx: typer.Context,
    month: Month = None,
    engine: EngineName = None,
    summary: Annotated[
        bool, typer.Option("--summary", help="Only count and sum by tenant, model and outcome; nothing is written.")
    ] = False,
    as_of: AsOf = None,
    as_json: AsJson = False,
    config: Config = None,
    log_level: LogLevel = None,
) -> int:
    """Explain every gap between observed and reported tokens.

    Usage is read anew with the dialects of this version and priced anew with the book first. Run again, it changes
    nothing. What may still come (the setting `lateness`) is provisional; what became of that is told. Exit 1 where a
    finding is open and at least a warning.
    """
    from weighbridge.pipeline.engine.engine import months_of as months_scraped
    from weighbridge.pipeline.engine.engine import weigh_engines
    from weighbridge.pipeline.reconcile.match.lateness import Lateness
    from weighbridge.pipeline.reconcile.reconcile import months_of
    from weighbridge.pipeline.reconcile.reconcile import reconcile as weigh
    from weighbridge.pipeline.run.changes import notice
    from weighbridge.pipeline.run.failure import PROGRESS, spoken
    from weighbridge.pipeline.run.night import days_of, read_anew, set_prices

    home = home_of(ctx, config, log_level)
    lake = home.lake()
    chosen = engine or home.settings.engine
    if summary:
        return _summarise(lake, month, chosen, as_json=as_json)
    show_progress()
    notice(home, datetime.now(UTC))
    months = (month,) if month else months_of(lake)
    days = days_of(lake, months)
    with spoken(f"reading the usage of {len(days)} days"):
        read_anew(home, days)
    with spoken("pricing it"):
        set_prices(home, days)
    for each in sorted(set(months) & set(months_scraped(lake))):
        with spoken(f"weighing the engines of {each}"):
            weigh_engines(lake, month=each)
    _log.info("read and priced; reconciling %d months", len(months))
    result = weigh(
        lake,
        month=month,
        key_id=home.key_id,
        ids_grace_days=home.settings.ids_grace_days,
        as_of=as_of or datetime.now(UTC).date(),
        engine=chosen,
        lateness=Lateness.of(home.settings.lateness),
        progress=logging.getLogger(PROGRESS).info,
    )
    counts = Counter((finding.period, str(finding.severity), finding.code) for finding in result.findings)
    if as_json:
        write_json(
            {
                "months": result.months,
                "attempts": result.attempts,
                "statuses": result.statuses,
                "causes": result.causes,
                "transitions": [asdict(each) for each in result.transitions],
                "findings": [
                    {"period": period, "severity": severity, "code": code, "findings": count}
                    for (period, severity, code), count in sorted(counts.items())
                ],
            }
        )
    else:
        write_table(["attempts and directions", "rows"], list(result.statuses.items()))
        if result.transitions:
            write_line()
            names = ["period", "provider", "direction", "provisional, now", "amounts", "observed", "reported", "now"]
            write_table(names, [["" if cell is None else cell for cell in astuple(t)] for t in result.transitions])
        write_line()
        write_table(
            ["period", "severity", "code", "findings"], [[*key, count] for key, count in sorted(counts.items())]
        )
        if result.attempts and not set(result.statuses) - {Status.NOT_COMPARED}:
            write_line(f"\n{_ONE_SIDE}")
        write_line("\nNext: weighbridge findings ls\n      weighbridge report")
    return FINDINGS if weighty(lake, months) else CLEAN


def _summarise(lake: Lake, month: str | None, engine: str, *, as_json: bool) -> int:
    from weighbridge.pipeline.reconcile.overview.groups import P95
    from weighbridge.pipeline.reconcile.overview.overview import overview
    from weighbridge.pipeline.reconcile.overview.pairs import MATCHED, NOT_COMPARED

    groups = overview(lake, month=month, engine=engine)
    if as_json:
        write_json({"month": month, "engine": engine, "groups": groups.to_dicts()})
    else:
        told = [[*row[:-1], None if row[-1] is None else Decimal(row[-1]) / 100] for row in groups.iter_rows()]
        write_table([name.replace("_", " ") for name in groups.columns[:-1]] + [P95.removesuffix("_hundredths")], told)
    return CLEAN if set(groups["kind"]) <= {MATCHED, NOT_COMPARED} else FINDINGS


COMMAND = Command("reconcile", reconcile, WEIGH, order=1)
