"""Reconcile bills: every month of every provider that charges anything, against pages of usage and against invoices."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import partial

import polars as pl

from weighbridge.pipeline.invoice.cells import Grouping
from weighbridge.pipeline.invoice.compare import MonthResult, charged_cells, compare, rows
from weighbridge.pipeline.invoice.contract import Contract
from weighbridge.pipeline.invoice.contradictory import limits
from weighbridge.pipeline.invoice.findings import findings_of, of_details, of_pages
from weighbridge.pipeline.invoice.grain import settled
from weighbridge.pipeline.invoice.ledger import Ledger
from weighbridge.pipeline.invoice.ours.bundles import Bundling
from weighbridge.pipeline.invoice.ours.prices import Pricing
from weighbridge.pipeline.invoice.ours.usage import call_days, contradictory_calls
from weighbridge.pipeline.invoice.rates import Rates
from weighbridge.pipeline.invoice.spans import periods
from weighbridge.pipeline.invoice.sums import exactly
from weighbridge.pipeline.invoice.terms import MonthTerms, month_terms, taken
from weighbridge.pipeline.invoice.theirs.doubles import once
from weighbridge.pipeline.invoice.theirs.lines import calls_of, charges, importers_of, latest_lines, providers_of
from weighbridge.pipeline.invoice.theirs.pages import counted, groupings, latest_pages, page_charges
from weighbridge.pipeline.invoice.zones import month_of, span_of
from weighbridge.pipeline.lake import Lake, polars_schema
from weighbridge.pipeline.lake.found import write_findings
from weighbridge.pipeline.lake.records import Records
from weighbridge.pipeline.price.book import PriceBook
from weighbridge.pipeline.price.frame import READING_COLUMNS
from weighbridge.schemas.enumerations import BillingStatus, ChargedBy, FindingOrigin, LineKind
from weighbridge.schemas.finding import Finding

_DAY = timedelta(days=1)
_COLUMNS = tuple(dict.fromkeys((*READING_COLUMNS, "total")))


@dataclass(frozen=True, slots=True)
class InvoiceResult:
    """What a run did.

    Attributes:
        months: (month, provider, what it was held against), in order.
        statuses: status -> cells.
        causes: how many causes were found.
        findings: worst first.
    """

    months: tuple[tuple[str, str, str], ...]
    statuses: Mapping[str, int]
    causes: int
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class Books:
    """What every month is compared with.

    Attributes:
        contracts: provider -> what was agreed.
        prices: the price book.
        key: the installation's pseudonym key; null where projects and tenants are named by their pseudonyms.
    """

    contracts: Mapping[str, Contract]
    prices: PriceBook
    key: bytes | None = None

    def contract(self, provider: str) -> Contract:
        """What was agreed with a provider; where nobody says, list prices."""
        return self.contracts.get(provider) or Contract(provider)


@exactly
def reconcile_invoices(lake: Lake, books: Books, now: datetime, *, month: str | None = None) -> InvoiceResult:
    """Hold bills and usage pages against our own priced usage; write `invoice_gap`, `invoice_cause` and `finding`.

    Readings and prices have to be up to date. A second run on the same lake changes nothing.

    Args:
        lake: where the tables lie.
        books: contracts and prices.
        now: the UTC moment it is.
        month: `YYYY-MM`; every month that anything was charged in if it is null.

    Raises:
        ConfigError: a contract or the price book cannot be used.
        ContractError: sums leave the range of the lake.
        LakeBusyError: another process is writing.
    """
    with lake.lock():
        results = months_compared(lake, books, now, None if month is None else {month})
        gaps: list[dict[str, object]] = []
        causes: list[dict[str, object]] = []
        for result in results:
            gap_rows, cause_rows = rows(result)
            gaps += gap_rows
            causes += cause_rows
        periods_ = None if month is None else (month,)
        _write(lake, "invoice_gap", gaps, periods_)
        _write(lake, "invoice_cause", causes, periods_)
        found = [finding for result in results for finding in findings_of(result)]
        compared = [(result.ledger.contract, result.ledger.month) for result in results]
        zones = {provider: contract.zone for provider, contract in books.contracts.items()}
        found += of_pages(lake, zones, periods_)
        found += of_details(lake, [(told.provider, month_, told.zone) for told, month_ in compared])
        ordered = tuple(sorted(found, key=lambda f: (f.period, f.code, f.finding_id)))
        write_findings(lake, ordered, origin=FindingOrigin.INVOICE, periods=periods_)
    counts = pl.Series("status", [row["status"] for row in gaps], dtype=pl.String).value_counts().sort("status")
    about = tuple((r.ledger.month, r.ledger.contract.provider, str(r.ledger.against)) for r in results)
    return InvoiceResult(about, dict(counts.iter_rows()), len(causes), ordered)


@exactly
def months_compared(
    lake: Records, books: Books, now: datetime, asked_for: Collection[str] | None = None
) -> list[MonthResult]:
    """The months that are asked for, all where null, of every provider, against its pages and its invoices."""
    lines, pages, rates = latest_lines(lake), latest_pages(lake), Rates.of(lake)
    importers = importers_of(lake)
    out = []
    used: dict[str, dict[str, Decimal | None]] = {}
    last = None if asked_for is None else max(asked_for, default="")
    closed = _closed(lake, books)
    for provider in sorted({*providers_of(lines), *pages["provider"].unique()}):
        contract = books.contract(provider)
        own, doubled = once(lines.filter(pl.col("provider") == provider), importers, contract.zone)
        told = charges(own, contract, books.key, partial(calls_of, lake, provider))
        by = groupings(pages, provider)
        of_pages = page_charges(pages, contract, books.key, by[0]) if by else told.clear()
        for month in sorted({*told["month"], *of_pages["month"]}):
            wanted = asked_for is None or month in asked_for
            # What is left of a credit is told by the months before the one that is asked for.
            if not wanted and (not contract.credits or month > (last or "")):
                continue
            asked = _Asked(lake, books, contract, month, rates, now, provider in closed and month in closed[provider])
            if wanted and of_pages.filter(pl.col("month") == month).height:
                out.append(asked.against_pages(of_pages))
            if told.filter(pl.col("month") == month).height:
                result, terms = asked.against_invoice(told, of_pages, used.setdefault(provider, {}))
                notes = {**result.notes, "doubled": [each for each in doubled if each.month == month]}
                result = replace(result, notes=notes)
                out += [result] if wanted else []
                used[provider] |= taken(used[provider], terms, contract.credits, asked.first_day)
    return out


def _closed(lake: Records, books: Books) -> dict[str, set[str]]:
    """Provider -> months, by the billing zone, of which it says for every account that the billing period is closed."""
    rows_ = lake.scan("invoice_detail").sort("revision").collect()
    last = rows_.unique(["provider", "invoice_id", "detail_id"], keep="last")
    told = last.filter(pl.col("billing_status").is_not_null(), pl.col("billing_start").is_not_null())
    out: dict[str, set[str]] = {}
    still: dict[str, set[str]] = {}
    for provider, start, status in told.select("provider", "billing_start", "billing_status").iter_rows():
        into = out if status == BillingStatus.CLOSED else still
        into.setdefault(provider, set()).add(month_of(start, books.contract(provider).zone))
    return {provider: months - still.get(provider, set()) for provider, months in out.items()}


@dataclass(frozen=True, slots=True)
class _Asked:
    """One month with one provider."""

    lake: Records
    books: Books
    contract: Contract
    month: str
    rates: Rates
    now: datetime
    closed: bool

    @property
    def first_day(self) -> date:
        """The first day of the month."""
        return date.fromisoformat(f"{self.month}-01")

    def against_pages(self, pages: pl.DataFrame) -> MonthResult:
        """Its usage pages."""
        ledger = self._ledger(pages, ChargedBy.USAGE_PAGE, None)
        return compare(ledger, {}, self.now, closed=False)

    def against_invoice(
        self, lines: pl.DataFrame, pages: pl.DataFrame, used: Mapping[str, Decimal | None]
    ) -> tuple[MonthResult, MonthTerms]:
        """Its bills."""
        own = lines.filter(pl.col("month") == self.month)
        # A line that a later export of its invoice no longer has is charged no longer: a finding, and in no sum.
        lines = lines.filter(~pl.col("withdrawn"))
        told = lines.filter(pl.col("month") == self.month)["currency"].drop_nulls()
        common = told.value_counts().sort("count", "currency", descending=[True, False])["currency"]
        currency = self.contract.currency or (common[0] if len(common) else None)
        # Nothing of ours can be held against a line in another currency, or in none: it is a finding and in no sum.
        of_bill = lines.filter(pl.col("currency") == pl.lit(currency, pl.String))
        ledger = self._ledger(of_bill, ChargedBy.INVOICE, currency)
        ledger = replace(ledger, counted=counted(pages.filter(pl.col("month") == self.month), ledger))
        given = ledger.predicted(ledger.agreed)
        paid = [figure.money for figure in given.values()]
        usage = sum((each for each in paid if each is not None), start=Decimal(0)) if None not in paid else None
        terms = month_terms(self.contract, usage, self.first_day, used)
        asked = {kind: due for kind, due in terms.lines.items() if self._agreed(kind)}
        result = compare(ledger, asked, self.now, closed=self.closed)
        return replace(result, notes={"terms": terms, "lines": own}), terms

    def _agreed(self, kind: LineKind) -> bool:
        """Whether the contract says anything of lines of a kind."""
        contract = self.contract
        told = {
            LineKind.DISCOUNT: bool(contract.volume or (contract.commitment and contract.commitment[1])),
            LineKind.COMMITMENT: contract.commitment is not None,
            LineKind.MINIMUM: contract.minimum is not None,
            LineKind.CREDIT: bool(contract.credits),
        }
        return told[kind]

    def _ledger(self, lines: pl.DataFrame, against: ChargedBy, currency: str | None) -> Ledger:
        begin, end = span_of(self.month, self.contract.zone)
        of_tokens = lines.filter(pl.col("kind") == str(LineKind.TOKENS))
        own = lines.filter(pl.col("month") == self.month)
        grouping = Grouping.of(of_tokens.filter(pl.col("month") == self.month))
        fits = [grouping.fits(*told) for told in own.select("kind", "model", "token_class").iter_rows()]
        own = own.with_columns(kind=pl.when(pl.Series(fits, dtype=pl.Boolean)).then("kind"))
        own = own.with_columns(kind=pl.col("kind").replace({str(LineKind.REQUEST_FEE): str(LineKind.TOOL_FEE)}))
        own = own.with_columns(token_class=pl.col("token_class").replace(grouping.folded))
        told = own.filter(pl.col("kind") == str(LineKind.TOKENS))
        foreign = of_tokens.filter(pl.col("month") != self.month).select("start", "end").rows()
        spans = periods(told.select("start", "end").rows(), self.month, self.contract.zone, foreign)
        whole = (min(begin, *(s for s, _ in spans)) - _DAY, max(end, *(e for _, e in spans)) + _DAY)
        provider, models = self.contract.provider, self.contract.models
        pricing = Pricing(self.books.prices)
        bundling = Bundling(tuple(spans), self.contract.zone, grouping.folded, pricing)
        bundles = bundling.of(call_days(self.lake, provider, whole, models, _COLUMNS))
        grouping, lacking = settled(grouping, told, bundles)
        served = {(bundle.provider, bundle.model) for bundle in bundles}
        spoiled = contradictory_calls(self.lake, provider, whole, models)
        return Ledger(
            contract=self.contract,
            month=self.month,
            against=against,
            grouping=grouping,
            spans=spans,
            charged=charged_cells(own, grouping, [*spans, (begin, end)]),
            calls=bundles,
            currency=currency,
            rates=self.rates,
            pricing=pricing,
            month_end=end,
            tiers=pricing.tiers(served) if currency else (),
            by_length=bool(currency) and pricing.by_length(served),
            turns=pricing.turns(served, (begin.date(), end.date())) if currency else (),
            lacking=lacking,
            spoiled=limits(spoiled, grouping, spans, pricing),
        )


def _write(lake: Lake, table: str, fresh: list[dict[str, object]], periods_: Collection[str] | None) -> None:
    """Replace the rows of these months, all where null."""
    frame = pl.DataFrame(fresh, schema=polars_schema(table), infer_schema_length=None)
    kept = lake.scan(table).collect()
    kept = kept.clear() if periods_ is None else kept.filter(~pl.col("period").is_in(list(periods_)))
    lake.replace(table, pl.concat([kept, frame]), days=None)
