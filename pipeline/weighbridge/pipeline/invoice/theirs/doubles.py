"""Lines that were taken in twice: one bill through two importers or in two groupings, and one line on two bills.

    edition                      1 April  2 April
    focus, by project and class     7.20     3.10    the finer one: it is in the sums
    cost_pages, by model            7.20     3.10    the same days come to the same: they are left out

An *edition* is what files of one importer, in one grouping and of one account, say of a month. Two editions are the
same bill where every day that both tell comes to the same, in one currency; where one tells no days, the whole month
has to; on the last day of one of them they may differ, where days before come to the same several sums, as it was
fetched before that day was over. Where both name projects or keys, and none in common, one sum may be a coincidence:
several days of other sums have to be the same. An edition that names no account is held against all accounts together.
The finer edition counts, of equals the one with more lines that count tokens, then with more lines, then the first by
name. A line of one identity and amount on the bills of two months counts on the earlier, unless the later one takes the
same amount back: then it is charged anew. What is left out stays in the lake, and is told.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from decimal import Decimal

import polars as pl

from weighbridge.pipeline.ingest.charges.withdrawn import WITHDRAWN
from weighbridge.pipeline.invoice.sums import payable
from weighbridge.pipeline.invoice.zones import day_of, last_day_of, month_of

TWO_EDITIONS, TWO_BILLS = "bill_taken_in_twice", "line_on_two_bills"
# What an edition may be grouped by: the more it names, the finer it is.
NAMED = ("model", "project", "api_key", "token_class", "modality", "service_tier", "region", "sku")
# A day has up to 25 hours; what lasts longer is of the month.
_DAY = timedelta(hours=25)
# One importer reads binary numbers, and another one cents: days that differ by less than half a cent are the same,
# where they come to more than a little together.
_NEAR, _ENOUGH = Decimal("0.005"), Decimal(1)
_OWNERS = ("project", "api_key")
_SAME_LINE = ("account", "line_id", "period_start", "period_end", "currency", "amount", "tokens")


@dataclass(frozen=True, slots=True)
class Doubled:
    """Lines that are in no sum, as others say the same.

    Attributes:
        code: `TWO_EDITIONS` or `TWO_BILLS`.
        month: `YYYY-MM`, by the billing zone.
        kept, left: who says it: importers and what they group by, or bills.
        rows: how many lines are left out.
        segments: files of both, those that count first.
        amount, currency: what is charged twice; of editions, what the one that is left out has more; null for nothing.
    """

    code: str
    month: str
    kept: str
    left: str
    rows: int
    segments: tuple[str, ...]
    first_day: date
    last_day: date
    amount: Decimal | None = None
    currency: str | None = None


@dataclass(slots=True)
class _Edition:
    """What files of one importer and grouping say of a month: its days, and what is of the month as a whole."""

    name: str
    grain: int
    rows: list[Mapping[str, object]] = field(default_factory=list)
    days: dict[date, Decimal] = field(default_factory=dict)
    rest: Decimal | None = None
    owners: set[str] = field(default_factory=set)

    def add(self, row: Mapping[str, object], day: date | None) -> None:
        """Add a line."""
        self.rows.append(row)
        self.owners |= {str(row[name]) for name in _OWNERS if row[name] is not None}
        paid = Decimal(str(row["amount"] or 0))
        if day is None:
            self.rest = (self.rest or Decimal(0)) + paid
        else:
            self.days[day] = self.days.get(day, Decimal(0)) + paid

    @property
    def counted(self) -> int:
        """How many of its lines count tokens."""
        return sum(row["tokens"] is not None for row in self.rows)

    @property
    def total(self) -> Decimal:
        """What it comes to."""
        return sum(self.days.values(), start=self.rest or Decimal(0))


def once(
    lines: pl.DataFrame, importers: Mapping[str, str], zone: str, *, by_bill: bool = False
) -> tuple[pl.DataFrame, list[Doubled]]:
    """The lines of one provider that count, and what is left out as said twice.

    Args:
        lines: rows of `invoice_line`, last revisions.
        importers: digest of a file -> what read it.
        zone: the billing zone.
        by_bill: whether each bill keeps what it charges, though an earlier one charged it.
    """
    rows = lines.with_row_index("_row")
    standing = rows.filter(~pl.col("notes").list.contains(WITHDRAWN).fill_null(value=False))
    gone: set[int] = set()
    doubled = [] if by_bill else list(_two_bills(standing, zone, gone))
    doubled += _two_editions(standing.filter(~pl.col("_row").is_in(list(gone))), importers, zone, gone)
    return rows.filter(~pl.col("_row").is_in(list(gone))).drop("_row"), doubled


def _two_bills(rows: pl.DataFrame, zone: str, gone: set[int]) -> Iterator[Doubled]:
    several = rows.filter(pl.col("amount").is_not_null(), pl.col("invoice_id").n_unique().over(_SAME_LINE) > 1)
    same = ["invoice_id", "period_start", "period_end", "currency", "amount"]
    back = rows.select(*same[:-1], amount=-pl.col("amount")).unique()
    # What a bill takes back and charges anew is charged there: only both together come to nothing.
    several = several.join(back.with_columns(_back=True), on=same, how="left", nulls_equal=True)
    held: dict[tuple[str, str, str, str], list[Mapping[str, object]]] = {}
    segments: dict[tuple[str, str, str, str], list[str]] = {}
    for own in several.sort(*_SAME_LINE, "invoice_id").partition_by(_SAME_LINE):
        first, *others = own.unique("invoice_id", keep="first", maintain_order=True).iter_rows(named=True)
        for row in (each for each in others if not each["_back"]):
            about = month_of(row["period_start"], zone), first["invoice_id"], row["invoice_id"], row["currency"] or ""
            held.setdefault(about, []).append(row)
            segments.setdefault(about, []).extend(each for each in (first["segment"], row["segment"]) if each)
            gone.add(int(row["_row"]))
    for about, own_ in sorted(held.items()):
        month, kept, left, currency = about
        told = _doubled(TWO_BILLS, month, kept, left, own_, segments[about], zone)
        paid = sum((Decimal(str(row["amount"])) for row in own_), start=Decimal(0))
        yield replace(told, amount=payable(paid), currency=currency) if currency else told


def _two_editions(rows: pl.DataFrame, importers: Mapping[str, str], zone: str, gone: set[int]) -> Iterator[Doubled]:
    found = _editions(rows, importers, zone)
    # Those that name no account come last: what is left out of the others is known by then.
    for about, editions in sorted(found.items(), key=lambda each: (each[0][2] is None, repr(each[0]))):
        month, currency, account = about
        if currency is None:
            continue
        kept = _of_all_accounts(found, month, currency, gone, zone) if account is None else []
        for edition in sorted(editions, key=lambda each: (-each.grain, -each.counted, -len(each.rows), each.name)):
            whole = next((each for each in kept if _said(each, edition)), None)
            left = [] if whole is None else _left_out(whole, edition, zone)
            if whole is None or not left:
                kept.append(edition)
                continue
            gone |= {int(str(row["_row"])) for row in left}
            files = [str(row["segment"]) for row in (*whole.rows, *left) if row["segment"]]
            told = _doubled(TWO_EDITIONS, month, whole.name, edition.name, left, files, zone)
            more = _more(whole, edition)
            yield told if more is None else replace(told, amount=more, currency=currency)


def _of_all_accounts(
    found: Mapping[tuple[str, str | None, str | None], Sequence[_Edition]], month: str, currency: str,
    gone: Collection[int], zone: str,
) -> list[_Edition]:  # fmt: skip
    """Editions of a month as those of all accounts that are named, together, without what is left out of them."""
    whole: dict[str, _Edition] = {}
    for (of_month, of_currency, account), editions in sorted(found.items(), key=repr):
        if account is None or (of_month, of_currency) != (month, currency):
            continue
        for each in editions:
            edition = whole.setdefault(each.name, _Edition(each.name, each.grain))
            for row in each.rows:
                if int(str(row["_row"])) not in gone:
                    edition.add(row, _day(row, zone))
    return [each for each in whole.values() if each.rows]


def _editions(
    rows: pl.DataFrame, importers: Mapping[str, str], zone: str
) -> dict[tuple[str, str | None, str | None], list[_Edition]]:
    """(month, currency, account) -> its editions. A bill that names no account is of the one there is, or of all."""
    accounts = rows["account"].drop_nulls().unique().to_list()
    only = accounts[0] if len(accounts) == 1 else None
    named = rows.group_by("segment").agg(pl.col(name).is_not_null().any() for name in NAMED)
    grains = {row["segment"]: tuple(name for name in NAMED if row[name]) for row in named.iter_rows(named=True)}
    found: dict[tuple[str, str | None, str | None], dict[str, _Edition]] = {}
    for row in rows.sort("period_start", "line_id", "invoice_id").iter_rows(named=True):
        grain = grains[row["segment"]]
        name = "/".join([importers.get(row["segment"], "import"), *grain])
        about = month_of(row["period_start"], zone), row["currency"], row["account"] or only
        edition = found.setdefault(about, {}).setdefault(name, _Edition(name, len(grain)))
        edition.add(row, _day(row, zone))
    return {about: list(editions.values()) for about, editions in found.items()}


def _day(row: Mapping[str, object], zone: str) -> date | None:
    start, end = row["period_start"], row["period_end"]
    return day_of(start, zone) if end - start <= _DAY else None  # type: ignore[operator,arg-type]


def _said(one: _Edition, other: _Edition) -> bool:
    """Whether two editions say the same, as far as both say anything."""
    common = sorted(one.days.keys() & other.days.keys())
    pairs = [(one.days[day], other.days[day]) for day in common]
    if not common:
        # Where one of them tells no days, only the month as a whole can be the same; two of other days are two parts.
        if one.days and other.days:
            return False
        pairs = [(one.total, other.total)]
    if one.owners and other.owners and one.owners.isdisjoint(other.owners) and len({a for a, _ in pairs if a}) <= 1:
        return False
    if _alike(pairs):
        return True
    # Of two that were fetched one after the other, the first has only a part of its last day.
    ends = bool(common) and common[-1] in {max(one.days), max(other.days)}
    return ends and len({a for a, _ in pairs[:-1] if a}) > 1 and _alike(pairs[:-1])


def _alike(pairs: Sequence[tuple[Decimal, Decimal]]) -> bool:
    """Whether sums are the same, to the last digit, or nearly where they come to something."""
    come_to = sum(abs(a) for a, _ in pairs)
    exact = all(a == b for a, b in pairs) and come_to > 0
    return exact or (all(abs(a - b) < _NEAR for a, b in pairs) and come_to >= _ENOUGH)


def _more(kept: _Edition, other: _Edition) -> Decimal | None:
    """What an edition that is left out has more on the days that both tell; null for nothing that matters."""
    more = sum((other.days[day] - kept.days[day] for day in kept.days.keys() & other.days.keys()), start=Decimal(0))
    return payable(more) if abs(more) >= _NEAR else None


def _left_out(kept: _Edition, other: _Edition, zone: str) -> list[Mapping[str, object]]:
    """The lines of an edition that the other one says, too: those of days both tell, or all of them."""
    common = kept.days.keys() & other.days.keys()
    if not common:
        return other.rows
    rest = other.rest is not None and kept.rest is not None and abs(other.rest - kept.rest) < _NEAR
    return [row for row in other.rows if (day := _day(row, zone)) in common or (day is None and rest)]


def _doubled(
    code: str, month: str, kept: str, left: str, rows: Sequence[Mapping[str, object]], files: Sequence[str], zone: str
) -> Doubled:
    days = [(row["period_start"], row["period_end"]) for row in rows]
    first = min(day_of(start, zone) for start, _ in days)  # type: ignore[arg-type]
    last = max(last_day_of(start, end, zone) for start, end in days)  # type: ignore[arg-type]
    return Doubled(code, month, kept, left, len(rows), tuple(dict.fromkeys(files)), first, last)
