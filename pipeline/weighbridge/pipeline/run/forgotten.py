"""What retention took: what was made of it stays as it is, and nothing is made anew from what is left.

It follows from the receipts in the lake and from the deletions that are begun, which retention writes down before it
deletes. So it holds where the notes of nights (`stamps`) are lost, and where a run of retention was cut off.

    pages      of months up to the last one whose page went
    rows       of days between the first and the last one of a receipt, by table

What an erasure took is something else: the page of its month is made anew without it. And whoever names a month or days
(`backfill`, `reconcile --month`) gets what can be made of what is left.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import date, timedelta

import polars as pl

from weighbridge.pipeline.reconcile.period import ends
from weighbridge.pipeline.retention.deletion import deletion_of
from weighbridge.pipeline.retention.ledger import PENDING, Ledger
from weighbridge.pipeline.run.home import Home
from weighbridge.pipeline.run.step import Rests

# A report may be booked some days after its attempt, across the end of a month; a zone moves that end by a day.
AROUND = timedelta(days=2)
LEDGER = "retention"
BILLED = frozenset(
    {"attempt", "child", "usage_report", "reading", "priced_amount", "reconciled", "gap", "gap_cause", "quarantine"}
)
RELEASED = frozenset({"shared_histogram"})
_RULE = "retention."
_PAGES = "reports"
_RECEIPT = ("rule", "table_name", "first_day", "last_day")
Span = tuple[str, date | None, date | None]


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What retention took from an installation.

    Attributes:
        spans: (table or folder, first UTC day, last UTC day), one per deletion; an end that is not known is null.
    """

    spans: frozenset[Span]

    def page(self, month: str) -> bool:
        """Whether a page of this month is past its time: that of this month or of a later one went by rule."""
        last = max((last for table, _, last in self.spans if table == _PAGES and last is not None), default=None)
        return last is not None and ends(month)[1] <= last

    def any(self, tables: Collection[str], first: date, last: date) -> bool:
        """Whether rows of any of these tables and days went, both inclusive."""
        return any(
            table in tables and (begin is None or begin <= last) and (end is None or end >= first)
            for table, begin, end in self.spans
        )

    def month(self, month: str, tables: Collection[str], around: timedelta = timedelta()) -> bool:
        """Whether rows of a month went, or of some days beside it."""
        first, last = ends(month)
        return self.any(tables, first - around, last + around)


def forgotten(home: Home) -> Forgotten:
    """What retention took, and what it has begun to take.

    Raises:
        ConfigError: a file of the ledger is not what was written there.
    """
    rows = home.lake().scan("receipt", columns=list(_RECEIPT)).filter(pl.col("rule").str.starts_with(_RULE)).unique()
    begun = map(deletion_of, Ledger(home.root / LEDGER).entries(PENDING).values())
    spans = {(table, first, last) for _, table, first, last in rows.collect().iter_rows()}
    return Forgotten(frozenset(spans | {(each.table, each.first, each.last) for each in begun if _by_rule(each.rule)}))


def _by_rule(rule: str) -> bool:
    return rule.startswith(_RULE)


def settled_months(home: Home, today: date) -> Rests:
    """Months that are over, grace included, and that retention took rows of: what is left of them is no month."""
    gone, grace = forgotten(home), timedelta(days=int(home.settings.close["grace_days"]))
    return lambda month, _lost: ends(month)[1] + grace < today and gone.month(month, BILLED, AROUND)


def judged_days(home: Home, _today: date) -> Rests:
    """Days that retention took rows of; and where nobody knows which days were judged, days it took the past of."""
    gone, judged = forgotten(home), set(home.lake().days("baseline"))
    before = timedelta(days=int(home.settings.baseline["season_days"]))

    def rests(unit: str, lost: bool) -> bool:
        day = date.fromisoformat(unit)
        return gone.any(BILLED, day, day) or (lost and day in judged and gone.any(BILLED, day - before, day))

    return rests


def audited_days(home: Home, _today: date) -> Rests:
    """Days of a month that retention took rows of, from those rows on: a bet goes on from the days before it."""
    gone = forgotten(home)

    def rests(unit: str, _lost: bool) -> bool:
        day = date.fromisoformat(unit)
        return gone.any(BILLED, day.replace(day=1), day)

    return rests


def released_days(home: Home, _today: date) -> Rests:
    """Days that retention took rows of: what was released and is past its time is not released again."""
    gone = forgotten(home)
    return lambda unit, _lost: gone.any(BILLED | RELEASED, date.fromisoformat(unit), date.fromisoformat(unit))


def published_months(home: Home, _today: date) -> Rests:
    """Months of whose releases some are past their time."""
    gone = forgotten(home)
    return lambda month, _lost: gone.month(month, RELEASED)
