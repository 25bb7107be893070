"""Which rows are due, by which rule, and which of them are held."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from functools import cached_property

import polars as pl

from weighbridge.pipeline.lake.lake import Lake
from weighbridge.pipeline.retention.facts import CONTENT, Fact, Kept
from weighbridge.pipeline.retention.holds import Hold
from weighbridge.pipeline.retention.policy import RetentionPolicy, Rule
from weighbridge.pipeline.retention.subject import HIT, Reach, Subject
from weighbridge.schemas.tables import TABLES

RULE, HELD = "_rule", "_held"


class Judge:
    """Policy and holds, held against the rows of a lake.

    Args:
        lake: the lake.
        policy: how long what is kept.
        today: the UTC day it is.
        holds: the holds that stand.
    """

    def __init__(self, lake: Lake, policy: RetentionPolicy, today: date, holds: Sequence[Hold]) -> None:
        """Take policy and holds; nothing is read yet."""
        self.lake = lake
        self.policy = policy
        self.today = today
        self.holds = holds
        self._rules: dict[Kept, list[tuple[Rule, Reach | None]]] = {}

    def rules(self, kept: Kept) -> list[tuple[Rule, Reach | None]]:
        """The rules of a class, most specific first, each with whom it is about; null: everybody else."""
        if kept not in self._rules:
            self._rules[kept] = [
                (
                    rule,
                    Reach(self.lake, Subject(tenant=rule.tenant, task=rule.task)) if rule.tenant or rule.task else None,
                )
                for rule in self.policy.rules(kept)
            ]
        return self._rules[kept]

    @cached_property
    def _held(self) -> list[tuple[Hold, Reach]]:
        return [(hold, Reach(self.lake, hold.subject)) for hold in self.holds]

    def plain(self, fact: Fact) -> Rule | None:
        """The one rule of a table by day whose rows are all under it and of which none is held, null where not so."""
        assert fact.kept is not None
        rules = self.rules(fact.kept)
        held = any(hold.covers(fact.table) for hold in self.holds)
        return rules[0][0] if len(rules) == 1 and TABLES[fact.table].daily and not held else None

    def judged(self, fact: Fact, rows: pl.LazyFrame) -> pl.LazyFrame:
        """`rows` with `_rule`, the place of the rule by which each is due (null: not due), and `_held`.

        A block of token ids cannot be taken apart: it is due when one of its rows is, and held when one of them is.

        Args:
            fact: what holds for the table.
            rows: its rows, of whole days, with at least the columns of `Reach.read`; order is kept.
        """
        assert fact.kept is not None
        rules = self.rules(fact.kept)
        place = pl.lit(len(rules) - 1, dtype=pl.Int32)
        due = pl.lit(rules[-1][0].last_due(self.today))
        for at in reversed(range(len(rules) - 1)):
            rule, reach = rules[at]
            assert reach is not None
            rows = reach.marked(fact.table, rows, loosely=False).rename({HIT: f"_of_{at}"})
            place = pl.when(f"_of_{at}").then(pl.lit(at, dtype=pl.Int32)).otherwise(place)
            due = pl.when(f"_of_{at}").then(pl.lit(rule.last_due(self.today))).otherwise(due)
        rows = rows.with_columns(pl.when(fact.end <= due).then(place).alias(RULE))
        rows = rows.drop([f"_of_{at}" for at in range(len(rules) - 1)])
        rows = held(fact.table, rows, self._held)
        if fact.kept in CONTENT and "block" in TABLES[fact.table].names:
            rows = rows.with_columns(_whole("block", pl.col(RULE).min(), RULE))
        return rows


def held(table: str, rows: pl.LazyFrame, holds: Sequence[tuple[Hold, Reach]]) -> pl.LazyFrame:
    """`rows` with `_held`: whether a hold stops their deletion; a block is held as a whole."""
    stopped = pl.lit(value=False)
    places = [(at, reach) for at, (hold, reach) in enumerate(holds) if hold.covers(table)]
    for at, reach in places:
        rows = reach.marked(table, rows).rename({HIT: f"_stops_{at}"})
        stopped |= pl.col(f"_stops_{at}")
    rows = rows.with_columns(stopped.alias(HELD)).drop([f"_stops_{at}" for at, _ in places])
    if "block" in TABLES[table].names:
        rows = rows.with_columns(_whole("block", pl.col(HELD).any(), HELD))
    return rows


def _whole(group: str, value: pl.Expr, name: str) -> pl.Expr:
    """`value` over every group; rows of none keep their own."""
    return pl.when(pl.col(group).is_null()).then(pl.col(name)).otherwise(value.over(group)).alias(name)
