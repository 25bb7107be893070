"""Carrying out a plan: what earlier runs began, erasures of before, then everything that is due.

Run it again and it does nothing. Kill it anywhere and run it again, and the end is the same, with one receipt per
deletion. What could not be done, and what a hold keeps beyond its time, are findings.
It holds the lake's lock from beginning to end: nobody else writes, and of two runs at once the second is told
to wait.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import date, datetime

import polars as pl

from weighbridge.pipeline.retention.facts import FACTS, Fact, Kept
from weighbridge.pipeline.retention.folders import segments
from weighbridge.pipeline.retention.found import of_ledger, of_plan, tell
from weighbridge.pipeline.retention.holds import standing
from weighbridge.pipeline.retention.judge import HELD, RULE, Judge
from weighbridge.pipeline.retention.plan import Due, RetentionPlan, acks_due, plan
from weighbridge.pipeline.retention.receipts import Receipt
from weighbridge.pipeline.retention.repeat import repeat
from weighbridge.pipeline.retention.subject import KEY, Reach
from weighbridge.pipeline.retention.work import Work

_MONTH = 31


@dataclass(frozen=True, slots=True)
class Applied:
    """What one run did.

    Attributes:
        receipts: those that were written.
        resumed: deletions of an earlier run that were finished.
        repeated: erasures of which something had come back, and was erased again.
        finished: erasures of which something was left until now, as a hold kept it, and is no more.
        furthered: erasures of which some was left and went now, and some is still left.
        failed: what could not be deleted, and why; the next run tries it again.
    """

    receipts: tuple[Receipt, ...]
    resumed: int
    repeated: tuple[str, ...]
    failed: tuple[str, ...]
    finished: tuple[str, ...] = ()
    furthered: tuple[str, ...] = ()


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
        again = repeat(work)
        present = plan(places, planned.policy, planned.today)
        judge = Judge(places.lake, planned.policy, planned.today, standing(places.ledger))
        for due in present.due:
            rule, scope = due.rule.name, due.rule.scope(planned.today)
            if due.keys:
                work.keys(due.table, due.keys, rule=rule, scope=scope)
            elif due.paths:
                # A segment that could not be deleted keeps its acknowledgement.
                lying = segments(places.spools, places.acks, places.lake) if due.table == "acks" else ()
                files = acks_due(places, judge, lying) if due.table == "acks" else due
                rows, first, last = files.rows, files.first, files.last
                work.files(files.table, files.paths, rule=rule, scope=scope, rows=rows, first=first, last=last)
            elif due.rows:
                if due.table == "attempt":
                    _forget_closed(work, judge, due)
                _rows(work, judge, due)
        receipts = tuple(work.finish())
        left = plan(places, planned.policy, planned.today) if work.failed else present
        tell(places, [*of_ledger(places.ledger), *of_plan(left, deleted=not work.failed)])
        return Applied(
            receipts, resumed, again.came_back, tuple(work.failed), finished=again.finished, furthered=again.furthered
        )


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


def _forget_closed(work: Work, judge: Judge, due: Due) -> None:
    """A pack is a copy of billing rows: where those are kept for a shorter time than packs, they leave it too.

    Before the attempts themselves go: a run that is cut off in between finds them again.
    """
    places, fact = work.places, FACTS[due.table]
    assert fact.kept is not None
    soon = (
        due.rule.days + _MONTH >= judge.policy.rule(Kept.REPORTS).days
    )  # then the whole pack is due in a month's time
    if places.closes is None or places.forget_closed is None or not places.closes.is_dir() or due.last is None or soon:
        return
    if any(hold.covers("closes") for hold in judge.holds):
        return
    place = [rule for rule, _ in judge.rules(fact.kept)].index(due.rule)
    rows = judge.judged(fact, places.lake.scan(fact.table, columns=Reach.read(fact.table)))
    gone = rows.filter(pl.col(RULE) == place, ~pl.col(HELD)).select(KEY).unique().collect(engine="streaming")
    places.forget_closed(
        places.closes,
        places.lake,
        attempts=gone,
        tenant=None,
        counts=True,
        through=f"{due.last:%Y-%m}",
        rule=due.rule.name,
        by=work.by,
        now=work.now,
    )


def _days(judge: Judge, fact: Fact, last: date) -> Collection[date] | None:
    """The days of a table that may have rows that are due; null where it is not kept by day."""
    counts = judge.lake.counts(fact.table)
    return None if None in counts else [day for day in counts if day is not None and day <= last]
