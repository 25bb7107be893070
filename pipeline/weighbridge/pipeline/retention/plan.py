"""The plan: what is due and goes, by which rule, how much of it; what is due and held; nothing is changed.

    table by day, one rule, no hold     counted from the statistics of its files
    otherwise                           the columns that say whose a row is are read

Days are UTC days, as the lake has them: neither the zone of reports nor that of this machine plays a part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

import polars as pl

from weighbridge.pipeline.retention.deletion import deletion_of
from weighbridge.pipeline.retention.facts import CONTENT, FACTS, Fact, Kept, class_of_key
from weighbridge.pipeline.retention.folders import Sealed, dated, holds_path, holds_segment, segments, spent
from weighbridge.pipeline.retention.holds import Hold, standing
from weighbridge.pipeline.retention.judge import HELD, RULE, Judge
from weighbridge.pipeline.retention.keys import due_keys, key_names
from weighbridge.pipeline.retention.ledger import ERASURES, PENDING
from weighbridge.pipeline.retention.places import Places
from weighbridge.pipeline.retention.policy import RetentionPolicy, Rule
from weighbridge.pipeline.retention.subject import Reach
from weighbridge.schemas.keys import KeyUnavailableError


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """What one rule takes from one table or folder.

    Attributes:
        rule: the rule.
        table: the table or folder; of keys, the table they are for.
        rows: rows that go; of reports, closes and acks, files and folders.
        held: rows that are due and stay because of a hold.
        days: how many UTC days they are of.
        first, last: the first and last of these.
        keys: keys that are destroyed.
        held_keys: keys that are due and stay because of a hold.
        paths: what goes in a folder.
    """

    rule: Rule
    table: str
    rows: int = 0
    held: int = 0
    days: int = 0
    first: date | None = None
    last: date | None = None
    keys: tuple[str, ...] = ()
    held_keys: tuple[str, ...] = ()
    paths: tuple[Path, ...] = ()

    @property
    def why(self) -> str:
        """In words."""
        whose = (
            f" of {self.rule.tenant}" if self.rule.tenant else f" of task {self.rule.task}" if self.rule.task else ""
        )
        return f"{self.rule.kept}{whose}: kept {self.rule.days} days"


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionPlan:
    """What `apply` does.

    Attributes:
        places: where things lie.
        policy: how long what is kept.
        today: the UTC day it is.
        due: what goes, and what a hold stops, in the order of work.
        holds: the holds that stand.
        pending: deletions that an earlier run began and did not finish; they are finished first.
        erasures: requests that are held against the lake again.
        keys_known: whether the keys that are due could be told.
        notes: what could not be told, in words.
    """

    places: Places
    policy: RetentionPolicy
    today: date
    due: tuple[Due, ...]
    holds: tuple[Hold, ...]
    pending: int = 0
    erasures: int = 0
    keys_known: bool = True
    notes: tuple[str, ...] = field(default=())

    @property
    def rows(self) -> int:
        """Rows and files that go."""
        return sum(due.rows for due in self.due)


def plan(places: Places, policy: RetentionPolicy, today: date) -> RetentionPlan:
    """See what is due.

    Args:
        places: where things lie; only read.
        policy: how long what is kept.
        today: the UTC day it is.

    Raises:
        ConfigError: a file of the ledger is not what was written there.
        LakeError: the lake cannot be read.
    """
    holds = tuple(standing(places.ledger))
    judge = Judge(places.lake, policy, today, holds)
    notes: list[str] = []
    keys = _keys(places, judge, notes)
    due = list(keys or ())
    for fact in FACTS.values():
        due += rows_due(judge, fact)
    due += [*_pages(places, judge), *_spool(places, judge)]
    pending = [deletion_of(content) for content in places.ledger.entries(PENDING).values()]
    return RetentionPlan(
        places=places,
        policy=policy,
        today=today,
        due=tuple(item for item in due if item.rows or item.held or item.keys or item.held_keys),
        holds=holds,
        pending=len(pending),
        erasures=len(places.ledger.entries(ERASURES)),
        keys_known=keys is not None,
        notes=tuple(notes),
    )


def rows_due(judge: Judge, fact: Fact) -> list[Due]:
    """What is due of one table, one entry per rule."""
    if fact.kept is None:
        return []
    rule = judge.plain(fact)
    if rule is not None:
        counts = judge.lake.counts(fact.table)
        days = {day: rows for day, rows in counts.items() if day is not None and day <= rule.last_due(judge.today)}
        return [_due(rule, fact.table, pl.DataFrame({"day": list(days), "rows": list(days.values())}))] if days else []
    rows = judge.judged(fact, judge.lake.scan(fact.table, columns=Reach.read(fact.table)))
    counted = (
        rows.filter(pl.col(RULE).is_not_null())
        .group_by(RULE, day=fact.end)
        .agg(rows=(~pl.col(HELD)).sum().cast(pl.Int64), held=pl.col(HELD).sum().cast(pl.Int64))
        .collect(engine="streaming")
    )
    return [
        _due(judge.rules(fact.kept)[place][0], fact.table, part)
        for (place,), part in sorted(
            counted.partition_by(RULE, as_dict=True).items(), key=lambda item: int(str(item[0][0]))
        )
        if isinstance(place, int)
    ]


def _due(rule: Rule, table: str, counted: pl.DataFrame) -> Due:
    days = counted.filter(pl.col("rows") > 0)["day"].drop_nulls().sort().to_list()
    return Due(
        rule=rule,
        table=table,
        rows=int(counted["rows"].sum()),
        held=int(counted["held"].sum()) if "held" in counted.columns else 0,
        days=len(days),
        first=days[0] if days else None,
        last=days[-1] if days else None,
    )


def _keys(places: Places, judge: Judge, notes: list[str]) -> list[Due] | None:
    """The keys that are due; null where whoever holds them cannot say."""
    if places.keys is None:
        return []
    if not places.keys.erases:
        notes.append(
            "keys are made from one root key, and none of them can be destroyed alone: rows are deleted, and a copy of "
            "the lake that was made before stays readable to whoever has the root key"
        )
        return []
    try:
        names = key_names(places.lake, places.keys)
        if places.keys.names() is None:
            notes.append("the key service does not list its keys; only those that rows of the lake name are destroyed")
    except KeyUnavailableError as error:
        notes.append(f"{error}; keys that are due are not known")
        return None
    due, held = due_keys(names, judge.policy, judge.today, judge.holds)
    found = [Due(rule=rule, table=CONTENT[rule.kept][0], keys=tuple(keys)) for rule, keys in due.items()]
    for kept in CONTENT:
        stopped = tuple(name for name in held if class_of_key(name) is kept)
        if stopped:
            found.append(Due(rule=judge.policy.rule(kept), table=CONTENT[kept][0], held_keys=stopped))
    return found


def _pages(places: Places, judge: Judge) -> list[Due]:
    rule = judge.policy.rule(Kept.REPORTS)
    found = []
    closes = () if places.closes is None else (places.closes,)
    for name, folders in (("reports", places.reports), ("closes", closes)):
        old = [item for item in dated(folders) if item[2] <= rule.last_due(judge.today)]
        stopped = [item for item in old if any(holds_path(hold, name, *item[1:]) for hold in judge.holds)]
        goes = [item for item in old if item not in stopped]
        if old:
            found.append(
                Due(
                    rule=rule, table=name, rows=len(goes), held=len(stopped),
                    first=min((first for _, first, _ in goes), default=None),
                    last=max((last for _, _, last in goes), default=None),
                    paths=tuple(path for path, _, _ in goes),
                )
            )  # fmt: skip
    return found


def _spool(places: Places, judge: Judge) -> list[Due]:
    rule = judge.policy.rule(Kept.SPOOL)
    sealed = segments(places.spools, places.acks, places.lake)
    old = [one for one in sealed if one.acknowledged is not None and one.acknowledged <= rule.last_due(judge.today)]
    old = [one for one in old if one.taken_in]
    stopped = {one.path for one in old if holds_segment(judge.holds, one.path)}
    goes = [one for one in old if one.path not in stopped]
    words = [one.acknowledged for one in goes if one.acknowledged is not None]
    of_segments = Due(
        rule=rule, table="spool", rows=sum(one.rows for one in goes),
        held=sum(one.rows for one in old if one.path in stopped), first=min(words, default=None),
        last=max(words, default=None), paths=tuple(one.path for one in goes),
    )  # fmt: skip
    return [of_segments, acks_due(places, judge, [one for one in sealed if one not in goes])]


def acks_due(places: Places, judge: Judge, lying: Sequence[Sealed]) -> Due:
    """The acknowledgements that are due: older than the days of the spool, of segments that lie in none any more.

    A serving host that has not looked for so long ships its copy again; the lake knows its digest, and says so again.
    """
    rule = judge.policy.rule(Kept.SPOOL)
    words = spent(places.spools, places.acks, places.lake, lying)
    old = [word for word in words if word.day <= rule.last_due(judge.today)]
    stopped = [word for word in old if any(holds_path(hold, "spool", word.day, word.day) for hold in judge.holds)]
    days = [word.day for word in old if word not in stopped]
    return Due(
        rule=rule, table="acks", rows=len(days), held=len(stopped), first=min(days, default=None),
        last=max(days, default=None), paths=tuple(word.path for word in old if word not in stopped),
    )  # fmt: skip
