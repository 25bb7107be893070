"""What an erasure takes from the tables of the lake, and which keys.

Rows of the billing domain stay, exact and under the tenant's pseudonym, where the law wants accounts kept (Article
17(3)(b) and (e) GDPR), unless billing is erased too. Token ids go with the keys of (tenant, subject bucket, month,
class): what others wrote under the same key goes with them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from weighbridge.pipeline.lake.shape import polars_schema
from weighbridge.pipeline.retention.deletion import masked
from weighbridge.pipeline.retention.facts import CONTENT, FACTS, Erasure, Fact, Owner, class_of_key
from weighbridge.pipeline.retention.holds import Hold
from weighbridge.pipeline.retention.judge import HELD, held
from weighbridge.pipeline.retention.keys import holds_key, key_names
from weighbridge.pipeline.retention.places import Places
from weighbridge.pipeline.retention.request import RULE, Request
from weighbridge.pipeline.retention.subject import HIT, NO_ATTEMPTS, Reach, Subject
from weighbridge.pipeline.retention.work import Work
from weighbridge.schemas.identity import erased
from weighbridge.schemas.keys import KeyScope
from weighbridge.schemas.tables import TABLES


class Erasing:
    """An erasure, held against the places as they are.

    Args:
        places: where things lie.
        request: what was asked for.
        subject: whom it is about, by name.
        holds: the holds that stand.
        more: attempts of the subject that are known from elsewhere, as from segments the lake has not read.
    """

    def __init__(
        self,
        places: Places,
        request: Request,
        subject: Subject,
        holds: Sequence[Hold],
        more: pl.DataFrame = NO_ATTEMPTS,
    ) -> None:
        """Name what is to be erased; nothing is read yet."""
        self.places = places
        self.lake = places.lake
        self.request = request
        self.reach = Reach(self.lake, replace(subject, last=request.last), more)
        self.holds = [(hold, Reach(self.lake, hold.subject)) for hold in holds]
        self.held_segments: list[Path] = []
        self.held_closes = 0
        self.held_pages: list[Path] = []

    @cached_property
    def _covered(self) -> list[str]:
        """The keys of the subject's buckets, up to the month of the request; once decided, those and no others.

        Raises:
            KeyUnavailableError: the provider cannot be reached.
        """
        keys = self.places.keys
        names = key_names(self.lake, keys) if keys is not None and keys.erases else []
        return [name for name in names if class_of_key(name) is not None and self._covers(KeyScope.of(name), name)]

    def covered(self) -> list[tuple[str, str]]:
        """Table and name of each key that is covered, held ones too.

        Raises:
            KeyUnavailableError: the provider cannot be reached.
        """
        kept = [(class_of_key(name), name) for name in self._covered]
        return [(CONTENT[each][0], name) for each, name in kept if each is not None]

    @property
    def held_keys(self) -> int:
        """How many keys that are covered a hold keeps."""
        return len(self.covered()) - sum(map(len, self.keys.values()))

    @cached_property
    def keys(self) -> dict[str, list[str]]:
        """Table -> names of the keys that go: those that are covered, and that no hold keeps.

        Raises:
            KeyUnavailableError: the provider cannot be reached.
        """
        found: dict[str, list[str]] = {}
        for table, name in self.covered():
            if not any(holds_key(hold, KeyScope.of(name), table) for hold, _ in self.holds):
                found.setdefault(table, []).append(name)
        return found

    def _covers(self, scope: KeyScope, name: str) -> bool:
        subject = self.reach.subject
        if self.request.keys is not None:  # decided: one that was made since is of data since
            return masked(name) in self.request.keys
        if scope.month > f"{self.request.last:%Y-%m}":
            return False
        if subject.attempts is not None:
            return (scope.tenant, scope.bucket, scope.month) in self._places
        return scope.tenant == subject.tenant and subject.bucket in {None, scope.bucket}

    @cached_property
    def _places(self) -> set[tuple[Any, ...]]:
        return set(self.reach.blocks.iter_rows())

    def decide(self) -> Request:
        """The request with the names of the keys it is about, held ones too."""
        self.request = replace(self.request, keys=frozenset(map(masked, self._covered)))
        return self.request

    def erases(self, fact: Fact) -> bool:
        """Whether rows of a table go or are cleared."""
        return fact.erasure in {Erasure.GOES, Erasure.CLEARED} or (
            fact.erasure is Erasure.BILLING and self.request.billing_too
        )

    def judged(self, fact: Fact, rows: pl.LazyFrame) -> pl.LazyFrame:
        """`rows` with `_hit` and `_held`; rows that are cleared already do not count.

        Args:
            fact: what holds for the table.
            rows: its rows, with at least the columns of `Reach.read` and those that are cleared; order is kept.
        """
        marked = self.reach.marked(fact.table, held(fact.table, rows, self.holds))
        return marked.with_columns(pl.col(HIT) & self._says(fact)) if fact.cleared else marked

    def _says(self, fact: Fact) -> pl.Expr:
        if fact.owner is Owner.EVIDENCE:
            of_somebody = pl.col("evidence").list.eval(pl.element().is_in(self.reach.hexes)).list.any()
            return of_somebody.fill_null(value=False)
        return pl.any_horizontal(pl.col(name).is_not_null() for name in fact.cleared)

    def counts(self, fact: Fact) -> tuple[int, int]:
        """How many rows of a table go, and how many are held; those of `whole` are neither.

        Those go that are the subject's and free, and those under a key that goes, whosoever they are.
        """
        keys = self.keys.get(fact.table) if self.erases(fact) else None
        names = list(dict.fromkeys([*Reach.read(fact.table), *fact.cleared, *(["key_id"] if keys else [])]))
        rows = self.lake.scan(fact.table, columns=names)
        if self._goes_whole(fact):
            rows = self._wholly(fact, rows).filter(~pl.col("_goes")).drop("_goes", HELD)
        rows = self.judged(fact, rows)
        under = pl.col("key_id").is_in(keys).fill_null(value=False) if keys else pl.lit(value=False)
        told = rows.select(
            free=((pl.col(HIT) & ~pl.col(HELD)) | under).sum().cast(pl.Int64),
            held=(pl.col(HIT) & pl.col(HELD) & ~under).sum().cast(pl.Int64),
        )
        return told.collect(engine="streaming").row(0)

    def held_rows(self) -> dict[str, int]:
        """Table -> rows that should go and that a hold keeps."""
        told = {fact.table: self.counts(fact)[1] for fact in FACTS.values() if self.erases(fact)} if self.holds else {}
        return {table: rows for table, rows in told.items() if rows}

    def carry_out(self, work: Work, tables: Collection[str] | None = None) -> None:
        """Erase the subject's rows from the lake, keys first.

        Args:
            work: the work it is part of.
            tables: only these; null: all.
        """
        about: Mapping[str, Any] = {"rule": RULE, "scope": self.request.scope}
        # What is known of the subject is read before any of it goes.
        _ = self.reach.attempts, self.reach.hexes, self.reach.requests, self.reach.segments, self._where
        for fact in FACTS.values():
            if tables is not None and fact.table not in tables:
                continue
            keys = self.keys.get(fact.table, [])
            self._about_tenant(work, fact, about)
            if self.erases(fact) and (keys or self.counts(fact)[0]):
                taken, clear = self._taken(fact, keys), self._clear(fact)
                scope = self.request.scope | (self._where if fact.kept in CONTENT else {})
                work.rows(fact.table, taken, rule=RULE, scope=scope, days=self._days(fact), keys=keys, clear=clear)

    @cached_property
    def _where(self) -> dict[str, str]:
        """Of single attempts, the places whose ids go with theirs: `<tenant's hash>.<bucket>`, separated by commas."""
        if self.reach.subject.attempts is None:
            return {}
        places = sorted({f"{erased(tenant)}.{bucket}" for tenant, bucket, _ in self._places})
        return {"places": ",".join(places)} if places else {}

    def _taken(self, fact: Fact, keys: Collection[str]) -> Any:
        def taken(rows: pl.DataFrame) -> pl.Series:
            told = self.judged(fact, rows.lazy()).select(pl.col(HIT) & ~pl.col(HELD)).collect().to_series()
            # What stands under a key that was destroyed cannot be read by anybody.
            return told | rows["key_id"].is_in(list(keys)).fill_null(value=False) if keys else told

        return taken

    def _clear(self, fact: Fact) -> list[pl.Expr]:
        if fact.erasure is not Erasure.CLEARED:
            return []
        if fact.owner is Owner.EVIDENCE:
            return [pl.col("evidence").list.eval(pl.element().filter(~pl.element().is_in(self.reach.hexes)))]
        kinds = {column.name: column for column in TABLES[fact.table].columns}
        return [pl.lit(None).alias(name) for name in fact.cleared if name in kinds]

    def whole(self, fact: Fact) -> pl.DataFrame:
        """Rows that are about the tenant as a whole, and go where billing goes too."""
        if not self._goes_whole(fact):
            return pl.DataFrame(schema=polars_schema(fact.table))
        return self._wholly(fact, self.lake.scan(fact.table)).filter("_goes").drop("_goes", HELD).collect()

    def _goes_whole(self, fact: Fact) -> bool:
        return fact.owner is Owner.EVIDENCE and self.request.billing_too and self.all_of_tenant

    def _wholly(self, fact: Fact, rows: pl.LazyFrame) -> pl.LazyFrame:
        subject = self.reach.subject
        own = (pl.col("tenant") == subject.tenant).fill_null(value=False) & fact.within(None, self.request.last)
        return held(fact.table, rows, self.holds).with_columns(_goes=own & ~pl.col(HELD))

    @property
    def all_of_tenant(self) -> bool:
        """Whether it is about everything of a tenant."""
        return self.reach.subject.tenant is not None and self.reach.subject.bucket is None

    def _about_tenant(self, work: Work, fact: Fact, about: Mapping[str, Any]) -> None:
        """Those rows go; of findings, so does what was said of them."""
        rows = self.whole(fact)
        if rows.is_empty():
            return
        if fact.table == "finding":
            gone = rows["finding_id"].to_list()
            work.rows("finding_status", lambda told: told["finding_id"].is_in(gone), days=None, **about)
        days = rows["day"].unique().to_list() if "day" in rows.columns else None

        def taken(each: pl.DataFrame) -> pl.Series:
            return self._wholly(fact, each.lazy()).select("_goes").collect().to_series()

        work.rows(fact.table, taken, days=days, **about)

    def _days(self, fact: Fact) -> list[date] | None:
        """The days of a table that have rows of the subject; null where it is not kept by day."""
        if not TABLES[fact.table].daily:
            return None
        names = list(dict.fromkeys([*Reach.read(fact.table), *fact.cleared]))
        hit = self.judged(fact, self.lake.scan(fact.table, columns=names)).filter(HIT)
        if keys := self.keys.get(fact.table):
            under = self.lake.scan(fact.table, columns=["day", "key_id"]).filter(pl.col("key_id").is_in(keys))
            hit = pl.concat([hit.select("day"), under.select("day")])
        return hit.select(pl.col("day").unique()).collect(engine="streaming")["day"].to_list()
