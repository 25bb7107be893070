"""`weighbridge engine`: what engines counted beside what their attempts add up to."""

from __future__ import annotations

from typing import Annotated

import typer

from weighbridge.cli.command import WEIGH, Command
from weighbridge.cli.exits import CLEAN, FINDINGS
from weighbridge.cli.open_findings import weighty
from weighbridge.cli.options import AsJson, Config, LogLevel, Month
from weighbridge.cli.output import counted, write_json, write_line, write_table
from weighbridge.cli.session import home_of
from weighbridge.schemas.enumerations import FindingOrigin

_NOTHING = (
    "Nothing was scraped. Take scrapes of your servers' /metrics in (docs/importing.md), and where you can the records "
    "of a stat logger beside them."
)
_NOTHING_IN = (
    "Nothing was scraped in {month}. A scrape is of the time that it tells itself, whatever day was named for records "
    "without one; without --month all months are shown."
)
_TOTALS = ("counter", "label", "counted", "attempted", "gap", "explained", "residual", "windows")
_CAUSES = ("cause", "counter", "tokens", "windows", "confidence")
_WINDOWS = ("since", "until", "counter", "label", "counted", "attempted", "gap", "residual", "status", "across")


def engine(
    ctx: typer.Context,
    month: Month = None,
    windows: Annotated[bool, typer.Option("--windows", help="Each window, not only their sums.")] = False,
    unexplained: Annotated[bool, typer.Option("--unexplained", help="Only windows with a residual.")] = False,
    as_json: AsJson = False,
    config: Config = None,
    log_level: LogLevel = None,
) -> int:
    """Hold what engines counted against what their attempts add up to.

    Windows end where no attempt runs across; what is left over has causes, each with its exact amount or within stated
    bounds. Run again, it changes nothing. Exit 1 where a finding of engines is open and at least a warning.
    """
    from weighbridge.pipeline.engine.engine import weigh_engines
    from weighbridge.pipeline.engine.summary import Summary

    lake = home_of(ctx, config, log_level).lake()
    result = weigh_engines(lake, month=month)
    summary = Summary.of(lake, result.months)
    told = summary.windows(unexplained=unexplained) if windows or unexplained else []
    if as_json:
        write_json(
            {
                "months": result.months,
                "statuses": result.statuses,
                "shares": result.shares,
                "totals": summary.totals(),
                "causes": summary.causes(),
                "windows": told,
            }
        )
    elif not result.windows:
        write_line(_NOTHING if month is None else _NOTHING_IN.format(month=month))
    else:
        write_table(_TOTALS, ([row[name] for name in _TOTALS] for row in summary.totals()))
        write_line()
        write_table(_CAUSES, ([row[name] for name in _CAUSES] for row in summary.causes()))
        if told:
            write_line()
            write_table(_WINDOWS, ([row[name] for name in _WINDOWS] for row in told))
        write_line(f"\n{counted(result.shares, 'attempt')} of which counters tell what nothing else does")
    return FINDINGS if weighty(lake, result.months, FindingOrigin.ENGINE) else CLEAN


COMMAND = Command("engine", engine, WEIGH, order=2)
