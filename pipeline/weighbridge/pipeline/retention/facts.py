"""What is kept for how long, and what an erasure does to it: one table of facts, a line per table of the lake.

    class        what lies in it
    reports      reports, packs of closes, what everybody may read
    billing      exact counts, usage reports, invoices, amounts, findings
    operations   requests and their stages
    ids          token ids, with their keys
    traces       traces of sparse strategies, with their keys
    spool        sealed segments on this host, once they are in the lake

A class covers tables of the lake and folders beside it. Of some tables nothing is ever taken: they hold nobody's data,
or they are what makes a second reading of the same file, or a second deletion, show.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from enum import StrEnum

import polars as pl

from weighbridge.schemas.keys import KeyScope


class Kept(StrEnum):
    """A class of retention; its name is its key in `[retention]`."""

    REPORTS = "reports"
    BILLING = "billing"
    OPERATIONS = "operations"
    IDS = "ids"
    TRACES = "traces"
    SPOOL = "spool"


class Owner(StrEnum):
    """How it is known whose a row is."""

    ROW = "row"  # the row names the tenant
    ATTEMPT = "attempt"  # the tenant of its attempt
    REQUEST = "request"  # the row names the tenant; single subjects are found by their request
    EVIDENCE = "evidence"  # the row names the tenant, and lists attempts as evidence
    FILE = "file"  # it could not be read, so nobody knows: all that came in one file
    NOBODY = "nobody"


class Erasure(StrEnum):
    """What an erasure does to rows of the subject."""

    GOES = "goes"
    BILLING = "billing"  # goes where billing counts are erased too, stays otherwise
    CLEARED = "cleared"  # stays, with the columns that tell of somebody emptied
    STAYS = "stays"


@dataclass(frozen=True, slots=True)
class Fact:
    """What holds for one table.

    Attributes:
        table: its name.
        kept: its class; null: nothing is ever taken.
        end: the last UTC day a row is about, from which its days are counted.
        begin: the first one, where that is another.
        owner: how it is known whose a row is.
        erasure: what an erasure does.
        cleared: the columns it empties, where it does.
        why: why nothing is ever taken.
    """

    table: str
    kept: Kept | None
    end: pl.Expr
    owner: Owner
    erasure: Erasure
    cleared: tuple[str, ...] = ()
    why: str = ""
    begin: pl.Expr | None = None

    def within(self, first: date | None, last: date | None) -> pl.Expr:
        """Whether a row is about any day from `first` to `last`; null is open."""
        told = pl.lit(value=True)
        if first is not None:
            told &= self.end >= first
        if last is not None:
            told &= (self.end if self.begin is None else self.begin) <= last
        return told.fill_null(value=False)


_DAY = pl.col("day")
_SINCE = pl.col("period").str.to_date("%Y-%m", strict=False)
_MONTH = _SINCE.dt.month_end()
_CHANGED = pl.col("changed_at").dt.date()
_NEVER = pl.lit(None, dtype=pl.Date)


def _billed(table: str, owner: Owner = Owner.ATTEMPT, erasure: Erasure = Erasure.BILLING) -> Fact:
    return Fact(table, Kept.BILLING, _DAY, owner, erasure)


def _always(table: str, why: str) -> Fact:
    return Fact(table, None, _NEVER, Owner.NOBODY, Erasure.STAYS, why=why)


# The attempt comes last of its class: whose a row of another table is may be known from it alone.
FACTS: Mapping[str, Fact] = {
    fact.table: fact
    for fact in (
        Fact("token_run", Kept.IDS, _DAY, Owner.ROW, Erasure.GOES),
        Fact("state_event", Kept.TRACES, _DAY, Owner.ATTEMPT, Erasure.GOES),
        Fact("request_scope", Kept.OPERATIONS, _DAY, Owner.REQUEST, Erasure.GOES),
        _billed("alias", erasure=Erasure.GOES),
        _billed("foreign_id", erasure=Erasure.GOES),
        _billed("child"),
        _billed("usage_report"),
        _billed("reading"),
        _billed("priced_amount"),
        _billed("reconciled"),
        _billed("gap_cause"),
        _billed("gap"),
        Fact("baseline", Kept.BILLING, _DAY, Owner.EVIDENCE, Erasure.CLEARED, ("evidence",)),
        Fact("quarantine", Kept.BILLING, _DAY, Owner.FILE, Erasure.CLEARED,
             ("leaf_shape", "leaf_integers", "leaf_texts")),
        Fact("usage_period", Kept.BILLING, _DAY, Owner.ROW, Erasure.BILLING),
        *(Fact(table, Kept.BILLING, _DAY, Owner.NOBODY, Erasure.STAYS)
          for table in ("engine_counter", "engine_gap", "engine_gap_cause")),
        _billed("engine_share"),
        Fact("recount_constant", Kept.BILLING, _MONTH, Owner.NOBODY, Erasure.STAYS, begin=_SINCE),
        Fact("audit_cell", Kept.BILLING, _DAY, Owner.NOBODY, Erasure.STAYS),
        Fact("audit_tolerance", Kept.BILLING, pl.col("last_day"), Owner.NOBODY, Erasure.STAYS,
             begin=pl.col("first_day")),
        Fact("comparison", Kept.BILLING, _DAY, Owner.NOBODY, Erasure.STAYS),
        Fact("recommendation", Kept.BILLING, _CHANGED, Owner.NOBODY, Erasure.STAYS),
        Fact("invoice_line", Kept.BILLING, (pl.col("period_end") - pl.duration(microseconds=1)).dt.date(),
             Owner.NOBODY, Erasure.STAYS),
        Fact("invoice_detail", Kept.BILLING,
             pl.coalesce(pl.col("billing_end") - pl.duration(microseconds=1), "issued_at").dt.date(),
             Owner.NOBODY, Erasure.STAYS),
        Fact("invoice_gap", Kept.BILLING, _MONTH, Owner.ROW, Erasure.BILLING, begin=_SINCE),
        Fact("invoice_cause", Kept.BILLING, _MONTH, Owner.NOBODY, Erasure.STAYS, begin=_SINCE),
        Fact("finding", Kept.BILLING, pl.coalesce(_MONTH, "last_day"), Owner.EVIDENCE, Erasure.CLEARED, ("evidence",),
             begin=pl.coalesce("first_day", _SINCE)),
        Fact("finding_status", Kept.BILLING, _CHANGED, Owner.NOBODY, Erasure.STAYS),
        Fact("quarantine_status", Kept.BILLING, _CHANGED, Owner.NOBODY, Erasure.STAYS),
        _billed("attempt"),
        Fact("adjustment", Kept.REPORTS, _MONTH, Owner.ROW, Erasure.BILLING, begin=_SINCE),
        Fact("allocated", Kept.REPORTS, _MONTH, Owner.NOBODY, Erasure.STAYS, begin=_SINCE),
        Fact("shared_histogram", Kept.REPORTS, _DAY, Owner.NOBODY, Erasure.STAYS),
        _always("close", "the root of a closed month: without it the month would be open again"),
        _always("strategy", "configurations, nobody's data"),
        _always("price", "public prices"),
        _always("price_tier", "public prices"),
        _always("price_fee", "public prices"),
        _always("currency_rate", "public rates"),
        _always("change", "who changed the configuration: what a figure rests on is told as long as the figure is"),
        _always("segment", "digests of files: the same file read again is known, and brings nothing back"),
        _always("receipt", "proofs of deletions; they hold nothing of what was erased"),
    )
}  # fmt: skip

# Classes whose rows are encrypted, and the class in the names of their keys.
CONTENT: Mapping[Kept, tuple[str, str]] = {Kept.IDS: ("token_run", "ids"), Kept.TRACES: ("state_event", "traces")}
KINDS: Mapping[str, Kept] = {kind: kept for kept, (_, kind) in CONTENT.items()}


def class_of_key(name: str) -> Kept | None:
    """The class of what a key covers, null for a kind this version does not know."""
    return KINDS.get(KeyScope.of(name).kind)


def tables_of(kept: Kept) -> list[Fact]:
    """The tables of a class, in the order they are emptied."""
    return [fact for fact in FACTS.values() if fact.kept is kept]
