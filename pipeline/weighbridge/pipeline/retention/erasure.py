"""One erasure: what somebody asked to have erased, as it is remembered, and what it takes from every place.

What is remembered names nobody: a tenant and each attempt are hashes, which say of the tenant or attempt at hand
whether it is meant. So a lake that is restored from a backup is emptied again, and the memory itself holds nothing of
what was erased. An erasure is about rows up to and including the UTC day on which it was asked for.

Rows of the billing domain stay, exact and under the tenant's pseudonym, where the law wants accounts kept (Article
17(3)(b) and (e) GDPR), unless billing is erased too. Token ids go with the keys of (tenant, subject bucket, month,
class): what others wrote under the same key goes with them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from weighbridge.pipeline.lake.lake import Lake
from weighbridge.pipeline.lake.shape import polars_schema
from weighbridge.pipeline.retention.deletion import masked
from weighbridge.pipeline.retention.facts import CONTENT, FACTS, Erasure, Fact, Owner, class_of_key
from weighbridge.pipeline.retention.holds import Hold
from weighbridge.pipeline.retention.judge import HELD, held
from weighbridge.pipeline.retention.keys import holds_key, key_names
from weighbridge.pipeline.retention.ledger import ERASURES, Ledger
from weighbridge.pipeline.retention.places import Places
from weighbridge.pipeline.retention.subject import HIT, KEY, NO_ATTEMPTS, Reach, Subject
from weighbridge.pipeline.retention.work import Work
from weighbridge.schemas.identity import AttemptKey, erased, framed
from weighbridge.schemas.keys import KeyScope
from weighbridge.schemas.tables import TABLES

RULE = "erasure"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """An erasure as it is remembered.

    Attributes:
        erasure_id: hash of whom it is about, of its day, and of whether billing goes too.
        tenant: the tenant's hash (`identity.erased`), null where single attempts are meant.
        bucket: of that tenant, one bucket of data subjects.
        attempts: the hashes of single attempts.
        last: the last UTC day it is about.
        billing_too: billing counts go too.
        keys: names of the keys that go, tenants as hashes; null: not decided yet.
        by, at: who asked, and when.
        left: rows, segments and closes of it that a hold keeps, or that could not be reached.
        waits: names of files of the spool that were not sealed when it was asked for, and are not yet.
        traces: how many traces the search found that should be gone.
    """

    erasure_id: str
    tenant: str | None
    bucket: int | None
    attempts: frozenset[str]
    last: date
    billing_too: bool
    keys: frozenset[str] | None
    by: str
    at: str
    left: int = 0
    waits: tuple[str, ...] = ()
    traces: int = 0

    @property
    def scope(self) -> dict[str, str]:
        """What it is about, for receipts."""
        told = {"erasure": self.erasure_id}
        if self.tenant:
            told["tenant"] = self.tenant
        if self.bucket is not None:
            told["bucket"] = str(self.bucket)
        if self.attempts:
            told["attempts"] = str(len(self.attempts))
        return told | {"to": self.last.isoformat(), "billing": "erased" if self.billing_too else "kept"}

    def content(self) -> dict[str, Any]:
        """As it is written down."""
        return {
            "tenant": self.tenant,
            "bucket": self.bucket,
            "attempts": sorted(self.attempts),
            "last": self.last.isoformat(),
            "billing_too": self.billing_too,
            "keys": None if self.keys is None else sorted(self.keys),
            "by": self.by,
            "at": self.at,
            "left": self.left,
            "waits": list(self.waits),
            "traces": self.traces,
        }


def request_of(name: str, content: Mapping[str, Any]) -> Request:
    """The erasure that was written down."""
    return Request(
        erasure_id=name,
        tenant=content["tenant"],
        bucket=content["bucket"],
        attempts=frozenset(content["attempts"]),
        last=date.fromisoformat(content["last"]),
        billing_too=content["billing_too"],
        keys=None if content["keys"] is None else frozenset(content["keys"]),
        by=content["by"],
        at=content["at"],
        left=content.get("left", 0),
        waits=tuple(content.get("waits", ())),
        traces=content.get("traces", 0),
    )


def remember(ledger: Ledger, name: str, **changed: Any) -> None:
    """Write down what is left of an erasure (`Request.left`, `waits`, `traces`); of one that is not there, nothing."""
    known = ledger.entry(ERASURES, name)
    if known is not None and known != known | changed:
        ledger.write(ERASURES, name, known | changed)


def remember_traces(ledger: Ledger, request: Request, traces: int) -> None:
    """Write down how many traces were found of somebody; an earlier search for the same is overtaken by this one."""
    whom = (request.tenant, request.bucket, request.attempts)
    for name, content in ledger.entries(ERASURES).items():
        other = request_of(name, content)
        if (other.tenant, other.bucket, other.attempts) == whom and other.billing_too <= request.billing_too:
            remember(ledger, name, traces=traces if name == request.erasure_id else 0)


def new_request(subject: Subject, *, last: date, billing_too: bool, by: str, now: datetime) -> Request:
    """The erasure of a subject that is asked for now."""
    tenant = None if subject.tenant is None else erased(subject.tenant)
    attempts = (
        frozenset() if subject.attempts is None else frozenset(map(_hash, subject.attempts.select(KEY).iter_rows()))
    )
    parts = (str(tenant), str(subject.bucket), str(last), str(billing_too), *sorted(attempts))
    return Request(
        erasure_id=hashlib.sha256(framed("weighbridge erasure", *parts)).hexdigest()[:32],
        tenant=tenant,
        bucket=subject.bucket,
        attempts=attempts,
        last=last,
        billing_too=billing_too,
        keys=None,
        by=by,
        at=now.astimezone(UTC).isoformat(),
    )


def _hash(key: tuple[int, int]) -> str:
    return erased(AttemptKey(*key).to_hex())


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
        self.held_closes = False

    @cached_property
    def _covered(self) -> list[str]:
        """The keys of the subject's buckets, up to the month of the request; once decided, those and no others.

        Raises:
            KeyUnavailableError: the provider cannot be reached.
        """
        keys = self.places.keys
        names = key_names(self.lake, keys) if keys is not None and keys.erases else []
        return [name for name in names if class_of_key(name) is not None and self._covers(KeyScope.of(name), name)]

    @cached_property
    def keys(self) -> dict[str, list[str]]:
        """Table -> names of the keys that go: those that are covered, and that no hold keeps.

        Raises:
            KeyUnavailableError: the provider cannot be reached.
        """
        found: dict[str, list[str]] = {}
        for name in self._covered:
            kept = class_of_key(name)
            assert kept is not None
            table, _ = CONTENT[kept]
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
        """How many rows of a table are the subject's and free, and how many are held; those of `whole` are neither."""
        names = list(dict.fromkeys([*Reach.read(fact.table), *fact.cleared]))
        rows = self.lake.scan(fact.table, columns=names)
        if self._goes_whole(fact):
            rows = self._wholly(fact, rows).filter(~pl.col("_goes")).drop("_goes", HELD)
        rows = self.judged(fact, rows).filter(HIT)
        told = rows.select(free=(~pl.col(HELD)).sum().cast(pl.Int64), held=pl.col(HELD).sum().cast(pl.Int64))
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


def attempts_of(places: Places, request: Request) -> pl.DataFrame:
    """The attempts in the lake that an erasure is about, by their hashes: attempt_hi, attempt_lo."""
    if not request.attempts:
        return NO_ATTEMPTS
    found: set[tuple[int, int]] = set()
    for table, about in TABLES.items():
        if set(KEY) <= set(about.names) and places.lake.version(table) is not None:
            keys = places.lake.scan(table, columns=KEY).drop_nulls().unique().collect(engine="streaming")
            found.update(key for key in keys.iter_rows() if _hash(key) in request.attempts)
    return pl.DataFrame(sorted(found), schema=NO_ATTEMPTS.schema, orient="row")


def tenant_of(lake: Lake, request: Request) -> str | None:
    """The pseudonym of the tenant an erasure is about, null where the lake has no row of it."""
    if request.tenant is None:
        return None
    for table, about in TABLES.items():
        if "tenant" in about.names:
            names = lake.scan(table, columns=["tenant"]).unique().collect(engine="streaming")["tenant"].drop_nulls()
            for name in names:
                if erased(name) == request.tenant:
                    return str(name)
    return None


def evidence_of(places: Places, request: Request) -> pl.DataFrame:
    """The attempts that findings list as evidence and that an erasure is about, by their hashes."""
    told = places.lake.scan("finding", columns=["evidence"]).select(pl.col("evidence").explode()).unique()
    hexes = told.drop_nulls().collect()["evidence"].to_list()
    keys = [AttemptKey.from_hex(text) for text in hexes if erased(text) in request.attempts]
    return pl.DataFrame(sorted(keys), schema=NO_ATTEMPTS.schema, orient="row")
