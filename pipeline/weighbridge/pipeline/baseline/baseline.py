"""The baseline step of a night: limits of every cell, what left them, and why."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal

import polars as pl

from weighbridge.pipeline.baseline.found import READ, TOLD, findings
from weighbridge.pipeline.baseline.history import read_history
from weighbridge.pipeline.baseline.incidents import Incidents
from weighbridge.pipeline.baseline.judge import judged
from weighbridge.pipeline.baseline.kindred import Kindred
from weighbridge.pipeline.baseline.material import Weighing
from weighbridge.pipeline.baseline.medians import Sorted
from weighbridge.pipeline.baseline.policy import BaselinePolicy
from weighbridge.pipeline.baseline.tasks import task_rows
from weighbridge.pipeline.baseline.window import Window
from weighbridge.pipeline.lake.found import write_findings
from weighbridge.pipeline.lake.lake import Lake
from weighbridge.pipeline.lake.shape import complete, empty
from weighbridge.schemas.enumerations import FindingOrigin, Severity
from weighbridge.schemas.finding import Finding

TABLE = "baseline"
# Days from the first to the last of those that are judged together: a year and a month. What is read of them lies in
# memory as one grid of series and days, however few of the days have rows.
MOST_DAYS = 400
_SCALE = tuple(Severity)


@dataclass(frozen=True, slots=True)
class BaselineResult:
    """What a run did.

    Attributes:
        days: the judged days that have rows, in order.
        cells: rows of `baseline` of these days.
        limits: of them, those that have a limit of single rows.
        tested: of them, those with a p-value.
        reported: of them, those that were found and are large enough.
        test_days, test_alarms: of the self-test over all cells: days tested, and days that would have been an alarm.
        findings: of the months of these days.
        raised: of them, those that are new or other than before, worst first.
    """

    days: tuple[date, ...]
    cells: int
    limits: int
    tested: int
    reported: int
    test_days: int
    test_alarms: int
    findings: tuple[Finding, ...]
    raised: tuple[Finding, ...]


def baseline(lake: Lake, *, days: Collection[date], policy: BaselinePolicy) -> BaselineResult:
    """Judge these days beside the days before each of them, and write `baseline` and the findings of their months.

    A day that comes out as it was is not written, so a second run changes nothing.

    Args:
        lake: where the tables lie; readings and prices have to be up to date.
        days: UTC days, in any order; those without any attempt or usage have their rows taken away.
        policy: what is asked.

    Raises:
        LakeBusyError: another process is writing.
    """
    asked = sorted(set(days))
    with lake.lock():
        held = {*lake.days("attempt"), *lake.days("reading")}
        present = [day for day in asked if day in held]
        rows = _judged(lake, present, policy)
        lake.replace(TABLE, rows, days=asked)
        months = sorted({f"{day:%Y-%m}" for day in asked})
        found = findings(_of_months(lake, months))
        raised = _changed(lake, found)
        write_findings(lake, found, origin=FindingOrigin.BASELINE, periods=months)
    return _result(present, rows, found, raised)


def _judged(lake: Lake, days: Sequence[date], policy: BaselinePolicy) -> pl.DataFrame:
    rows = empty(TABLE)
    for group in together(days, policy.season_days):
        # What is there stays where it is: only the rows of the group are put together.
        rows = rows.vstack(_whole(_judged_together(lake, group, policy, days, rows)))
    return rows


def _whole(frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    return complete(TABLE, pl.concat(frames, how="diagonal"))


def together(days: Sequence[date], season_days: int) -> list[list[date]]:
    """Days that are judged together: those whose past is shared, and `MOST_DAYS` from end to end at most.

    Args:
        days: rising.
        season_days: how many days before each are read.
    """
    groups: list[list[date]] = []
    for day in days:
        if groups and (day - groups[-1][-1]).days <= season_days and (day - groups[-1][0]).days < MOST_DAYS:
            groups[-1].append(day)
        else:
            groups.append([day])
    return groups


def _judged_together(
    lake: Lake, days: Sequence[date], policy: BaselinePolicy, all_days: Sequence[date], before: pl.DataFrame
) -> list[pl.DataFrame]:
    """Rows of these days; of others of `all_days` the lake's rows are out of date, and stand in `before` or are due."""
    first = days[0] - timedelta(days=policy.season_days)
    history = read_history(lake, first, days[-1], days, policy.tasks)
    incidents = Incidents(lake, history, all_days)
    incidents.add(before)
    # Asked about are the reference days of each, which end the day before it.
    kindred = Kindred(lake, days[0] - timedelta(days=policy.reference_days), days[-1] - timedelta(days=1))
    run = Sorted() if len(days) > 1 else None
    frames = []
    for day in days:
        window = Window(
            history=history,
            today=history.index(day),
            reference_days=policy.reference_days,
            season_days=policy.season_days,
            out=incidents.confirmed,
            reported=incidents.reported,
            run=run,
        )
        frames.append(Weighing(lake, kindred, window, policy, judged(window, policy)).weighed())
        incidents.add(frames[-1])
        declared = task_rows(window, policy.tasks)
        if declared is not None:
            frames.append(declared)
    return frames


def _of_months(lake: Lake, months: Sequence[str]) -> pl.DataFrame:
    rows = lake.scan(TABLE, columns=list(READ)).filter(pl.col("day").dt.strftime("%Y-%m").is_in(months))
    return rows.filter(TOLD).collect()


def _changed(lake: Lake, found: Sequence[Finding]) -> list[Finding]:
    """Those that are new or other than before, worst first."""
    names = ["finding_id", "severity", "expected", "observed", "amount", "last_day"]
    before = set(lake.scan("finding", columns=names).collect().iter_rows())
    changed = [each for each in found if tuple(each.row()[name] for name in names) not in before]
    return sorted(
        changed, key=lambda each: (-_SCALE.index(each.severity), -(each.amount or Decimal(0)), each.finding_id)
    )


def _result(
    days: Sequence[date], rows: pl.DataFrame, found: Sequence[Finding], raised: Sequence[Finding]
) -> BaselineResult:
    return BaselineResult(
        days=tuple(days),
        cells=rows.height,
        limits=rows.height - rows["upper"].null_count(),
        tested=rows.height - rows["p_value"].null_count(),
        reported=int(rows["reported"].sum()),
        test_days=int(rows["test_days"].sum()),
        test_alarms=int(rows["test_alarms"].sum()),
        findings=tuple(found),
        raised=tuple(raised),
    )
