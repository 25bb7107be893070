"""`weighbridge baseline`: judge days beside the days before them, and look at the limits they had."""

from __future__ import annotations

import logging
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weighbridge.cli.command import WEIGH, Command
from weighbridge.cli.exits import CLEAN, FINDINGS
from weighbridge.cli.open_findings import inside, lives, weighs
from weighbridge.cli.options import AsJson, Config, LogLevel, Month, Since, Until, check_range, parse_day
from weighbridge.cli.output import counted, write_json, write_line, write_table
from weighbridge.cli.session import home_of
from weighbridge.cli.tables import ID_DIGITS, write_findings
from weighbridge.schemas.enumerations import FindingOrigin
from weighbridge.schemas.errors import ConfigError

if TYPE_CHECKING:
    from weighbridge.pipeline.baseline.alerts import Alerted
    from weighbridge.pipeline.baseline.baseline import BaselineResult
    from weighbridge.pipeline.lake.lake import Lake

_log = logging.getLogger("weighbridge.cli")
_LISTED = 20

baseline = typer.Typer(
    no_args_is_help=True, help="What is usual for a cell (tenant, task, model, strategy, class), and what left it."
)


@baseline.command("run")
def run(
    ctx: typer.Context,
    month: Month = None,
    since: Since = None,
    until: Until = None,
    as_json: AsJson = False,
    config: Config = None,
    log_level: LogLevel = None,
) -> int:
    """Judge days: limits of every cell, which cells left them, what moved, and what it costs.

    Without a range it is the last day that has attempts and is not still to come. Run again, it changes nothing. New
    findings go to the webhook and the state of the day to the file the settings name under `alerts`. Exit 1 where a
    finding of baselines about these months is open and at least a warning.
    """
    from weighbridge.pipeline.baseline.alerts import alert
    from weighbridge.pipeline.baseline.baseline import baseline as judge
    from weighbridge.pipeline.baseline.policy import AlertPolicy, BaselinePolicy

    check_range(since, until)
    home = home_of(ctx, config, log_level)
    policy, alerts = BaselinePolicy.of(home.settings.baseline), AlertPolicy.of(home.settings.alerts)
    lake = home.lake()
    days = _days(lake, month, since, until)
    _log.info("judging %d days", len(days))
    result = judge(lake, days=days, policy=policy)
    alerted = alert(lake, result.raised, alerts)
    if as_json:
        write_json(_told(result, alerted))
    else:
        _write(result, alerted)
    months = {f"{day:%Y-%m}" for day in days}
    heavy = (row for row in lives(lake) if row["origin"] == FindingOrigin.BASELINE and weighs(row))
    return FINDINGS if any(inside(row, months, None, None) for row in heavy) else CLEAN


@baseline.command("show")
def show(
    ctx: typer.Context,
    cell: Annotated[
        str | None, typer.Argument(metavar="CELL", help="The first 8 or more digits of its id; left out: all of a day.")
    ] = None,
    day: Annotated[
        date | None, typer.Option("--day", metavar="DAY", parser=parse_day, help="The judged day. Default: the last.")
    ] = None,
    as_json: AsJson = False,
    config: Config = None,
    log_level: LogLevel = None,
) -> int:
    """Limits and figures of one cell over its days, or of the cells of one day: reported ones first.

    The band is where 90 of 100 new requests lie, the limit what 1 of 100 exceeds (as the settings have it), each at the
    day's season; `rows` is how many rows that rests on.
    """
    from weighbridge.pipeline.baseline.view import cell_over_days, cells_of, last_judged

    lake = home_of(ctx, config, log_level).lake()
    if cell is not None:
        rows = cell_over_days(lake, cell)
        shown = rows if day is None else [row for row in rows if row["day"] == day]
    else:
        shown = cells_of(lake, day or last_judged(lake))
    if as_json:
        write_json(shown)
        return CLEAN
    listed = shown if cell is not None else shown[:_LISTED]
    if cell is not None and listed:
        write_line("; ".join(f"{name}: {listed[0][name]}" for name in _NAMES if listed[0][name] is not None) + "\n")
    write_table(*_columns(listed, named=cell is None))
    if len(listed) < len(shown):
        write_line(f"\n{counted(len(shown) - len(listed), 'more cell')}; --json has all of them")
    return CLEAN


@baseline.command("tasks")
def tasks(ctx: typer.Context, as_json: AsJson = False, config: Config = None, log_level: LogLevel = None) -> int:
    """The task table: what requests of a task are declared to take, and the medians measured on the last judged day.

    Exit 1 where a median lies outside of its band.
    """
    from weighbridge.pipeline.baseline.policy import BaselinePolicy
    from weighbridge.pipeline.baseline.view import task_table

    home = home_of(ctx, config, log_level)
    rows = task_table(home.lake(), BaselinePolicy.of(home.settings.baseline))
    if as_json:
        write_json(rows)
    else:
        names = ["task", "direction", "declared", "band", "cells", "measured medians", "outside"]
        write_table(names, [_task(row) for row in rows])
    return FINDINGS if any(row["outside"] for row in rows) else CLEAN


_NAMES = ("cell", "tenant", "task", "model", "model_revision", "tokenizer", "strategy_id", "measure", "token_class")
_FIGURES = ("method", "season", "rows", "lower", "upper", "limit", "day_rows", "exceeding", "expected", "observed")


def _columns(rows: list[dict[str, Any]], *, named: bool) -> tuple[list[str], list[list[object]]]:
    first = ["cell", "tenant", "task", "model", "of"] if named else ["day"]
    names = [*first, *_FIGURES, "chance", "driver", "money"]
    return names, [_cells(row, named=named) for row in rows]


def _cells(row: dict[str, Any], *, named: bool) -> list[object]:
    from weighbridge.cli.tables import measured

    of = row["token_class"] or row["measure"]
    first = [row["cell"][:ID_DIGITS], row["tenant"], row["task"], row["model"], of] if named else [row["day"]]
    chance = None if row["p_value"] is None else f"{row['p_value']:.2g}"
    figures = [row[name] for name in _FIGURES]
    return [*first, *figures, chance, row["driver"], measured(row["amount"], row["currency"])]


def _task(row: dict[str, Any]) -> list[object]:
    declared = f"{row['low']:,} to {row['high']:,}, {100 * row['tolerance']:g} %"
    medians = None if row["least"] is None else f"{row['least']:,} to {row['largest']:,}"
    band = f"{row['lower']:,} to {row['upper']:,}"
    return [row["task"], row["direction"], declared, band, row["cells"], medians, row["outside"]]


def _days(lake: Lake, month: str | None, since: date | None, until: date | None) -> list[date]:
    held = sorted({*lake.days("attempt"), *lake.days("reading")})
    if not held:
        raise ConfigError("the lake has no attempts yet; run `weighbridge ingest` first")
    if month is None and since is None and until is None:
        # A record with a wrong clock may be of any day: one that is still to come is judged only where it is named.
        today = datetime.now(UTC).date()
        return [day for day in held if day <= today][-1:] or held[-1:]
    days = [
        day
        for day in held
        if (month is None or f"{day:%Y-%m}" == month)
        and (since is None or day >= since)
        and (until is None or day <= until)
    ]
    if not days:
        raise ConfigError(f"no day of that range has attempts; the lake has them from {held[0]} to {held[-1]}")
    return days


def _told(result: BaselineResult, alerted: Alerted) -> dict[str, object]:
    names = ("days", "cells", "limits", "tested", "reported", "test_days", "test_alarms")
    return {name: getattr(result, name) for name in names} | {
        "findings": len(result.findings),
        "raised": [finding.row() | {"state": None} for finding in result.raised],
        "posted": alerted.delivery.findings if alerted.delivery.delivered else 0,
        "post": alerted.delivery.outcome,
        "textfile": alerted.textfile,
    }


def _write(result: BaselineResult, alerted: Alerted) -> None:
    write_table(
        ["days", "cells", "with a band", "tested", "reported"],
        [[len(result.days), result.cells, result.limits, result.tested, result.reported]],
    )
    if result.test_days:
        rate = 100 * result.test_alarms / result.test_days
        write_line(
            f"\npromise: at most 5 % of days beyond 5 %; the reference windows have {rate:.1f} % "
            f"({result.test_alarms:,} of {counted(result.test_days, 'day')})"
        )
    if result.raised:
        write_line()
        write_findings([finding.row() for finding in result.raised[:_LISTED]])
        if len(result.raised) > _LISTED:
            write_line(f"and {counted(len(result.raised) - _LISTED, 'more finding')}")
    if alerted.delivery.delivered is not None:
        write_line(f"\nwebhook: {counted(alerted.delivery.findings, 'finding')}, {alerted.delivery.outcome}")
    write_line("\nNext: weighbridge baseline show\n      weighbridge findings ls --code baseline_exceeded")


COMMAND = Command("baseline", baseline, WEIGH, order=2)
