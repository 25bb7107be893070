"""The work on a month: a few days at a time are matched, explained, priced and written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import TypeAlias

import polars as pl

from weighbridge.pipeline.lake.shape import polars_schema
from weighbridge.pipeline.reconcile import money, rows
from weighbridge.pipeline.reconcile.engines import on_driver
from weighbridge.pipeline.reconcile.found import gap_findings, of_attempts
from weighbridge.pipeline.reconcile.frames import KEY, collected, frame_of
from weighbridge.pipeline.reconcile.month import Month, days_of
from weighbridge.pipeline.reconcile.period import ends, month_of
from weighbridge.pipeline.reconcile.recipe import by_recipe
from weighbridge.pipeline.reconcile.recount import recounts
from weighbridge.pipeline.reconcile.transition import Transition, now, provisional, transitions
from weighbridge.schemas.enumerations import Direction

Progress: TypeAlias = Callable[[str], None]


def silent(_: str) -> None:
    """Nobody waits."""


@dataclass(slots=True)
class Outcome:
    """What the batches of a month add up to.

    Attributes:
        attempts: attempts, and reports without one.
        causes: rows of `gap_cause`.
        statuses: status -> rows of `reconciled`.
        caused, unexplained: a tally per batch.
        unmatched: reports without an attempt, with what they cost, per batch.
        watched: providers of which attempts were observed.
        seen: attempts, without the reports nobody saw.
        unassigned: those of them without a tenant, a tally per batch.
        recounts: how far reports are from recounts (`recounts.points`), per batch.
        waiting: the tally of what is provisional, per batch.
        became: of what was provisional before how it stands now, per batch.
        transitions: what became of it.
    """

    attempts: int = 0
    causes: int = 0
    statuses: dict[str, int] = field(default_factory=dict)
    caused: list[pl.DataFrame] = field(default_factory=list)
    unexplained: list[pl.DataFrame] = field(default_factory=list)
    unmatched: list[pl.DataFrame] = field(default_factory=list)
    watched: set[str] = field(default_factory=set)
    seen: int = 0
    unassigned: list[pl.DataFrame] = field(default_factory=list)
    recounts: list[pl.DataFrame] = field(default_factory=list)
    waiting: list[pl.DataFrame] = field(default_factory=list)
    became: list[pl.DataFrame] = field(default_factory=list)
    transitions: tuple[Transition, ...] = ()


def reconcile_month(month: Month, progress: Progress = silent) -> Outcome:
    """Write `reconciled` and `gap_cause` of every day of the month; days that have no attempts any more are emptied.

    Args:
        month: the month.
        progress: is told before some of its days are worked on.
    """
    outcome = Outcome()
    before = provisional(month.lake, *ends(month.period))
    progress(f"reconciling {month.period}")
    done = 0
    for days in month.batches():
        if done:
            progress(f"reconciling {month.period}, {done} of {len(month.days)} days done")
        done += len(days)
        _reconcile_days(month, days, outcome, before)
    outcome.transitions = transitions(before, outcome.became, month.period)
    for table in ("reconciled", "gap_cause"):
        held = [day for day in days_of(month.lake, (table,)) if month_of(day) == month.period]
        if stale := [day for day in held if day not in month.days]:
            month.lake.replace(table, pl.DataFrame(schema=polars_schema(table)), days=stale)
    return outcome


def _reconcile_days(month: Month, days: Sequence[date], outcome: Outcome, before: pl.DataFrame) -> None:
    made = [_reconcile_part(part, days, outcome, before) for part in month.slices(days)]
    for place, table in enumerate(("reconciled", "gap_cause")):
        month.lake.replace(table, pl.concat([each[place] for each in made]), days=days)


def _reconcile_part(
    month: Month, days: Sequence[date], outcome: Outcome, before: pl.DataFrame
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Rows of `reconciled` and of `gap_cause` of these days, or of a slice of them; what they add up to is noted."""
    compared = month.compared(days)
    sides, pieces = [], []
    for direction in Direction:
        explained = month.explained(compared, direction, days)
        sides.append(collected(by_recipe(rows.reconciled, frame_of(explained))))
        # One row at a time of what is here: a cluster would read the same rows once for every cause there is.
        with on_driver():
            pieces.append(collected(by_recipe(rows.parts, frame_of(explained), direction)))
        del explained
    reconciled = _with_limits(month, month.matched(pl.concat(sides), days), compared, days)
    del sides
    parts = month.priced(pl.concat(pieces), days)
    causes = _gap_causes(parts)
    outcome.attempts += compared.height
    seen = compared.lazy().filter("seen").select(*KEY, "day", "tenant")
    outcome.seen += seen.select(pl.len()).collect().item()
    outcome.unassigned.append(of_attempts.without_tenant(seen))
    with on_driver():
        outcome.recounts.append(collected(by_recipe(recounts.points, frame_of(compared))))
    outcome.causes += causes.height
    for status, count in reconciled.group_by("status").len().iter_rows():
        outcome.statuses[status] = outcome.statuses.get(status, 0) + count
    outcome.caused.append(gap_findings.caused(parts))
    outcome.unexplained.append(gap_findings.unexplained(reconciled))
    outcome.waiting.append(gap_findings.open_amounts(reconciled))
    outcome.became.append(now(reconciled, before))
    _note_unmatched(month, compared, days, outcome)
    return reconciled, causes


def _with_limits(month: Month, reconciled: pl.DataFrame, compared: pl.DataFrame, days: Sequence[date]) -> pl.DataFrame:
    """The rows of `reconciled` whole: with what their residuals may cost."""
    left = reconciled.filter(pl.col("residual") != 0).select(*KEY, "day", "direction", "provider", "model", "residual")
    size = pl.coalesce("input_computed", "input_recounted", "reported_input")
    sized = left.join(compared.select(*KEY, input_size=size), on=list(KEY), how="left")
    costs = month.limits(sized, days) if left.height else pl.DataFrame(schema=money.LIMITS)
    whole = reconciled.join(costs, on=[*KEY, "direction"], how="left", maintain_order="left")
    return whole.select(list(polars_schema("reconciled")))


def _note_unmatched(month: Month, compared: pl.DataFrame, days: Sequence[date], outcome: Outcome) -> None:
    """Reports without an attempt, with what they cost, and who is observed at all."""
    figures = pl.coalesce("input_computed", "input_recounted", "output_computed", "output_recounted")
    observed = compared.lazy().filter(pl.col("seen") & figures.is_not_null() & pl.col("provider").is_not_null())
    outcome.watched |= set(observed.select("provider").unique().collect()["provider"])
    # What may still be seen, and tries of requests that were, are no strangers.
    strange = ~pl.col("seen") & pl.col("open_until").is_null() & pl.col("relation").is_null()
    unseen = compared.filter(strange).select(*KEY, "day", "provider", "model")
    costs = month.read("priced_amount", [*KEY, "amount", "currency"], days)
    keys = unseen.lazy().select(KEY)
    own = costs.join(keys, on=list(KEY), how="semi").group_by(KEY)
    whole = (pl.col("amount").null_count() == 0) & (pl.col("currency").n_unique() == 1)
    summed = own.agg(
        amount=pl.when(whole).then(pl.col("amount").sum()), currency=pl.when(whole).then(pl.col("currency").min())
    )
    outcome.unmatched.append(unseen.lazy().join(summed, on=list(KEY), how="left").collect())


def _gap_causes(parts: pl.DataFrame) -> pl.DataFrame:
    """Rows of the table `gap_cause`: the parts of gaps that were compared."""
    rows_of_table = parts.filter(pl.col("compared") & pl.col("tokens").is_not_null())
    names = ("day", "direction", "cause", "tokens", "confidence", "alternatives", "amount", "currency")
    return rows_of_table.select(*KEY, *names).with_columns(pl.col("alternatives").str.split(","))
