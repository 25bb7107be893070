"""Carrying out a plan: what earlier runs began, erasures of before, then everything that is due.

Run it again and it does nothing. Kill it anywhere and run it again, and the end is the same, with one receipt per
deletion. It holds the lake's lock from beginning to end: nobody else writes, and of two runs at once the second is told
to wait.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import date, datetime

import polars as pl

from weighbridge.pipeline.retention.facts import FACTS, Fact
from weighbridge.pipeline.retention.holds import standing
from weighbridge.pipeline.retention.judge import HELD, RULE, Judge
from weighbridge.pipeline.retention.plan import Due, RetentionPlan, plan
from weighbridge.pipeline.retention.receipts import Receipt
from weighbridge.pipeline.retention.repeat import repeat
from weighbridge.pipeline.retention.work import Work


@dataclass(frozen=True, slots=True)
class Applied:
    """What one run did.

    Attributes:
        receipts: those that were written.
        resumed: deletions of an earlier run that were finished.
        repeated: erasures of which something had come back, and was erased again.
        failed: what could not be deleted, and why; the next run tries it again.
    """

    receipts: tuple[Receipt, ...]
    resumed: int
    repeated: tuple[str, ...]
    failed: tuple[str, ...]


def apply(planned: RetentionPlan, *, by: str, now: datetime) -> Applied:
    """Delete what is due.

    What is due is looked at again under the lake's lock: rows that came since the plan, and holds that were placed
    since, are treated as they are then.

    Args:
        planned: the plan; its places, policy and day.
        by: who asked, for receipts.
        now: when, for receipts.

    Raises:
        LakeBusyError: somebody else is writing; nothing was done.
        LakeError: the lake cannot be written; running it again finishes it.
    """
    places = planned.places
    with places.lake.lock():
        work = Work(places, by=by, now=now)
        resumed = work.resume()
        repeated = repeat(work)
        present = plan(places, planned.policy, planned.today)
        judge = Judge(places.lake, planned.policy, planned.today, standing(places.ledger))
        for due in present.due:
            rule, scope = due.rule.name, due.rule.scope(planned.today)
            if due.keys:
                work.keys(due.table, due.keys, rule=rule, scope=scope)
            elif due.paths:
                rows, first, last = due.rows, due.first, due.last
                work.files(due.table, due.paths, rule=rule, scope=scope, rows=rows, first=first, last=last)
            elif due.rows:
                _rows(work, judge, due)
        return Applied(tuple(work.finish()), resumed, repeated, tuple(work.failed))


def _rows(work: Work, judge: Judge, due: Due) -> None:
    fact = FACTS[due.table]
    assert fact.kept is not None
    place = [rule for rule, _ in judge.rules(fact.kept)].index(due.rule)
    alone = judge.plain(fact) is not None

    def taken(rows: pl.DataFrame) -> pl.Series:
        if alone:
            return pl.Series([True]).new_from_index(0, rows.height)
        told = judge.judged(fact, rows.lazy()).select(pl.col(RULE).eq(place) & ~pl.col(HELD)).collect()
        return told.to_series().fill_null(value=False)

    work.rows(
        fact.table,
        taken,
        rule=due.rule.name,
        scope=due.rule.scope(judge.today),
        days=_days(judge, fact, due.rule.last_due(judge.today)),
    )


def _days(judge: Judge, fact: Fact, last: date) -> Collection[date] | None:
    """The days of a table that may have rows that are due; null where it is not kept by day."""
    counts = judge.lake.counts(fact.table)
    return None if None in counts else [day for day in counts if day is not None and day <= last]
