"""Whose rows: a subject, and which rows of every table are its own.

Most tables do not name the tenant of a row. They name its attempt, and the attempts of a subject are gathered from the
tables that do: what counts is any row of the attempt, whichever source wrote it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property

import polars as pl

from weighbridge.pipeline.lake.records import Records
from weighbridge.pipeline.retention.facts import FACTS, Owner
from weighbridge.schemas.identity import AttemptKey
from weighbridge.schemas.tables import TABLES

KEY = ("attempt_hi", "attempt_lo")
REQUEST = ("request_hi", "request_lo")
BLOCKS = ("tenant", "subject_bucket", "month")
HIT = "_hit"
NO_ATTEMPTS = pl.DataFrame(schema=dict.fromkeys(KEY, pl.Int64))
_READ = (
    *("day", "tenant", "task", "subject_bucket", *KEY, *REQUEST, "segment", "evidence", "month", "block", "key_id"),
    *("period", "first_day", "last_day", "changed_at", "period_end", "billing_end", "issued_at"),
)
# The tables that say whose an attempt is.
_TELLING = ("attempt", "token_run", "reconciled")


@dataclass(frozen=True, slots=True)
class Subject:
    """Whom something is about; nothing given means everybody.

    Attributes:
        tenant: a pseudonym.
        bucket: of that tenant, one bucket of data subjects.
        task: a task.
        attempts: single attempts: columns attempt_hi, attempt_lo.
        first, last: only rows of these UTC days, both inclusive; null is open.
    """

    tenant: str | None = None
    bucket: int | None = None
    task: str | None = None
    attempts: pl.DataFrame | None = field(default=None, compare=False)
    first: date | None = None
    last: date | None = None

    @property
    def everybody(self) -> bool:
        """Whether it is about no one in particular."""
        return self.tenant is None and self.bucket is None and self.task is None and self.attempts is None

    @property
    def columns(self) -> Mapping[str, str | int]:
        """Column -> the value it has in rows of the subject."""
        told = {"tenant": self.tenant, "subject_bucket": self.bucket, "task": self.task}
        return {name: value for name, value in told.items() if value is not None}


class Reach:
    """The rows of a subject in a lake, as it is when they are asked for.

    Args:
        lake: the lake, or another place with its tables.
        subject: whose rows.
        more: attempts of the subject that are known from elsewhere.
    """

    def __init__(self, lake: Records, subject: Subject, more: pl.DataFrame = NO_ATTEMPTS) -> None:
        """Name a subject in a lake; nothing is read yet."""
        self.lake = lake
        self.subject = subject
        self._more = more

    @cached_property
    def attempts(self) -> pl.DataFrame:
        """The keys of its attempts: attempt_hi, attempt_lo."""
        if self.subject.everybody:
            return NO_ATTEMPTS
        if self.subject.attempts is not None:
            return pl.concat([self.subject.attempts.select(KEY), self._more]).unique()
        found = [
            self._dated(table, self.lake.scan(table, columns=[*KEY, "day", *self.subject.columns]))
            .filter(*(pl.col(name) == value for name, value in self.subject.columns.items()))
            .select(KEY)
            for table in _TELLING
            if set(self.subject.columns) <= set(TABLES[table].names)
        ]
        return pl.concat([self._more.lazy(), *found]).unique().collect(engine="streaming")

    @cached_property
    def hexes(self) -> list[str]:
        """Its attempts as they are written in evidence."""
        return [AttemptKey(*key).to_hex() for key in self.attempts.iter_rows()]

    @cached_property
    def requests(self) -> pl.DataFrame:
        """The keys of the requests its attempts belong to."""
        attempts = self.lake.scan("attempt", columns=[*KEY, *REQUEST]).drop_nulls(REQUEST)
        mine = attempts.join(self.attempts.lazy(), on=KEY, how="semi")
        return mine.select(REQUEST).unique().collect(engine="streaming")

    @cached_property
    def blocks(self) -> pl.DataFrame:
        """Where the token ids of single attempts lie: tenant, subject_bucket, month.

        Ids of several attempts stand in one block and under one key, so they go together.
        """
        rows = self.lake.scan("attempt", columns=[*KEY, "day", "tenant", "subject_bucket"])
        runs = self.lake.scan("token_run", columns=[*KEY, "tenant", "subject_bucket", "month"])
        month = pl.col("day").dt.strftime("%Y-%m").alias("month")
        told = pl.concat([rows.select(*KEY, "tenant", "subject_bucket", month), runs])
        mine = told.drop_nulls(["tenant", "month"]).join(self.attempts.lazy(), on=KEY, how="semi")
        return mine.select("tenant", pl.col("subject_bucket").fill_null(0), "month").unique().collect()

    @cached_property
    def segments(self) -> list[str]:
        """The files its rows came in."""
        names = ("attempt", "usage_report", "token_run")
        found = [
            self.marked(table, self.lake.scan(table, columns=self.read(table))).filter(HIT).select("segment").unique()
            for table in names
        ]
        return pl.concat(found).unique().drop_nulls().collect(engine="streaming")["segment"].sort().to_list()

    @staticmethod
    def read(table: str) -> list[str]:
        """The columns by which rows of a table are told apart."""
        return [name for name in _READ if name in TABLES[table].names]

    def marked(self, table: str, rows: pl.LazyFrame, *, loosely: bool = True) -> pl.LazyFrame:
        """`rows` with the column `_hit`: whether each is one of the subject's.

        Args:
            table: the table.
            rows: its rows, with at least the columns of `read`; order is kept.
            loosely: rows count too that only list an attempt of the subject as evidence, or that could not be read and
                came in one file with rows of the subject.
        """
        fact, names = FACTS[table], TABLES[table].names
        if self.subject.everybody:
            return rows.with_columns(self._in_time(table).alias(HIT))
        if fact.owner is Owner.NOBODY or (fact.owner is Owner.FILE and not loosely):
            return rows.with_columns(pl.lit(value=False).alias(HIT))
        if fact.owner is Owner.FILE:
            return rows.with_columns((pl.col("segment").is_in(self.segments) & self._in_time(table)).alias(HIT))
        own = self._own(table)
        if set(KEY) <= set(names):
            own |= pl.col("_of_attempt")
            rows = _joined(rows, self.attempts, KEY, "_of_attempt")
        if fact.owner is Owner.REQUEST and not self._named(names):
            own |= pl.col("_of_request")
            rows = _joined(rows, self.requests, REQUEST, "_of_request")
        if fact.owner is Owner.EVIDENCE and loosely:
            own |= pl.col("evidence").list.eval(pl.element().is_in(self.hexes)).list.any().fill_null(value=False)
        if table == "token_run" and self.subject.attempts is not None:
            own |= pl.col("_of_block")
            rows = _joined(rows.with_columns(_bucket=pl.col("subject_bucket").fill_null(0)),
                           self.blocks.rename({"subject_bucket": "_bucket"}), ("tenant", "_bucket", "month"),
                           "_of_block").drop("_bucket")  # fmt: skip
        helpers = ("_of_attempt", "_of_request", "_of_block")
        return rows.with_columns(own.fill_null(value=False).alias(HIT)).drop(helpers, strict=False)

    def _named(self, names: tuple[str, ...]) -> bool:
        """Whether the rows of a table say themselves whether they are of the subject."""
        return self.subject.attempts is None and set(self.subject.columns) <= set(names)

    def _own(self, table: str) -> pl.Expr:
        if not self._named(TABLES[table].names):
            return pl.lit(value=False)
        told = [pl.col(name) == value for name, value in self.subject.columns.items()]
        return pl.all_horizontal(*told, self._in_time(table))

    def _in_time(self, table: str) -> pl.Expr:
        return FACTS[table].within(self.subject.first, self.subject.last)

    def _dated(self, table: str, rows: pl.LazyFrame) -> pl.LazyFrame:
        return rows.filter(self._in_time(table))


def _joined(rows: pl.LazyFrame, keys: pl.DataFrame, on: tuple[str, ...], name: str) -> pl.LazyFrame:
    """`rows` with a column that says whether their key is among `keys`."""
    known = keys.lazy().select(on).unique().with_columns(pl.lit(value=True).alias(name))
    return rows.join(known, on=on, how="left", maintain_order="left").with_columns(pl.col(name).fill_null(value=False))
