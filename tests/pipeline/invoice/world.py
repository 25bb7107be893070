"""A closed toy world: calls of one provider in April 2026, and a bill that a provider made of them in some way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl

from weighbridge.pipeline.invoice.compare import MonthResult, rows
from weighbridge.pipeline.invoice.contract import Contract
from weighbridge.pipeline.invoice.findings import findings_of, of_details
from weighbridge.pipeline.invoice.reconcile import Books, InvoiceResult, months_compared, reconcile_invoices
from weighbridge.pipeline.lake import Lake, polars_schema
from weighbridge.pipeline.lake.records import Records
from weighbridge.pipeline.price.book import PriceBook
from weighbridge.pipeline.price.frame import price_readings, refresh_prices
from weighbridge.pipeline.price.price_file import read_prices
from weighbridge.schemas.finding import Finding
from weighbridge.schemas.lattice import CROSSED_CELLS, REPORTED_CLASSES

CLASSES = tuple(str(name) for name in REPORTED_CLASSES)
CELLS = tuple(str(cell.name) for cell in CROSSED_CELLS)
MONTH = "2026-04"
FIRST = datetime(2026, 4, 1, tzinfo=UTC)
LATER = datetime(2026, 7, 1, tzinfo=UTC)
FILE = "a" * 64

PRICES = """
provider = "openai"
currency = "USD"
source = "made up for the tests"
[[rows]]
models = ["m"]
valid_to = 2026-04-10
modalities = ["audio"]
[rows.prices]
input = "3"
cache_read = "0.3"
cache_write_5m = "3.75"
cache_write_1h = "6"
output = "15"
audio_in = "40"
[[rows]]
models = ["m"]
valid_from = 2026-04-10
[rows.prices]
input = "2"
cache_read = "0.2"
cache_write_5m = "2.5"
cache_write_1h = "4"
output = "10"
audio_in = "40"
"""


def at(day: int, hour: int = 12, minute: int = 0) -> datetime:
    """A moment of April 2026."""
    return datetime(2026, 4, day, hour, minute, tzinfo=UTC)


@dataclass(frozen=True)
class InMemory:
    """Tables as `Records`."""

    tables: Mapping[str, pl.DataFrame]

    def scan(
        self, table: str, *, first: date | None = None, last: date | None = None, columns: Sequence[str] | None = None
    ) -> pl.LazyFrame:
        """The rows of a table, or of some days of it."""
        rows = self.tables[table].lazy()
        if first is not None and last is not None and "day" in polars_schema(table):
            rows = rows.filter(pl.col("day").is_between(first, last))
        return rows if columns is None else rows.select(columns)

    def days(self, table: str) -> list[date]:
        """The days a table has rows of."""
        return sorted(self.tables[table]["day"].unique())


@dataclass(frozen=True)
class Weighed:
    """What comparing months gives, as rows."""

    results: Sequence[MonthResult]

    @property
    def gaps(self) -> list[dict[str, Any]]:
        """The cells."""
        return sorted((row for each in self.results for row in rows(each)[0]), key=lambda row: row["cell"])

    @property
    def causes(self) -> list[dict[str, Any]]:
        """Their causes."""
        told = (row for each in self.results for row in rows(each)[1])
        return sorted(told, key=lambda row: (row["cell"], row["cause"]))

    @property
    def named(self) -> set[str]:
        """The codes of the causes."""
        return {row["cause"] for row in self.causes}

    @property
    def statuses(self) -> set[str]:
        """How far the cells are explained."""
        return {row["status"] for row in self.gaps}

    @property
    def findings(self) -> list[Finding]:
        """What was found."""
        return sorted((f for each in self.results for f in findings_of(each)), key=lambda f: f.finding_id)

    def closes(self) -> bool:
        """Whether causes and residual add up to the gap of every cell, and nothing is left over."""
        parts: dict[str, Decimal] = {}
        for row in self.causes:
            parts[row["cell"]] = parts.get(row["cell"], Decimal(0)) + row["amount"]
        known = [row for row in self.gaps if row["gap"] is not None]
        return set(parts) <= {row["cell"] for row in known} and all(
            parts.get(row["cell"], Decimal(0)) == row["gap"] and row["residual"] == 0 for row in known
        )


@dataclass
class World:
    """Calls and lines, put into a lake at once."""

    folder: Path
    prices: str = PRICES
    contract: Contract = field(default_factory=lambda: Contract("openai"))
    calls: list[dict[str, Any]] = field(default_factory=list)
    lines: list[dict[str, Any]] = field(default_factory=list)
    pages: list[dict[str, Any]] = field(default_factory=list)
    details: list[dict[str, Any]] = field(default_factory=list)
    rates: list[dict[str, Any]] = field(default_factory=list)
    files: list[dict[str, Any]] = field(default_factory=list)
    key: bytes | None = None
    ours: Mapping[str, pl.DataFrame] | None = None

    def call(
        self, when: datetime, *, status: str = "succeeded", attempt: Mapping[str, Any] | None = None, **counts: Any
    ) -> None:
        """One call with its usage; classes that are not named had no tokens."""
        number = len(self.calls) + 1
        whole = {name: counts.get(name, 0) for name in (*CLASSES, *CELLS)}
        rest = {name: value for name, value in counts.items() if name not in whole}
        totals = {
            "input_total": sum(whole[name] or 0 for name in CLASSES[:5]),
            "output_total": sum(whole[name] or 0 for name in CLASSES[5:]),
        }
        self.calls.append(
            {
                "attempt_hi": number,
                "attempt_lo": number,
                "day": when.date(),
                "source": "gateway",
                "arrived_at": when,
                "status": status,
                "provider": "openai",
                "api": "openai_chat",
                "model": "m",
                "verdict": "PROVED",
                "ended": "complete",
                "tenant": "unassigned",
                **whole,
                **totals,
                "total": sum(totals.values()),
                **rest,
                "attempt": attempt or {},
            }
        )

    def line(self, money: str | None, start: datetime, end: datetime | None = None, **about: Any) -> None:
        """One line of the bill: of input tokens of model m unless `about` says otherwise."""
        told: dict[str, Any] = {"category": "Usage", "kind": "tokens", "model": "m", "token_class": "input_uncached",
                                "sku": "m-input", "currency": "USD"}  # fmt: skip
        number = len(self.lines)
        self.lines.append(
            {
                "invoice_id": "openai:2026-04",
                "line_id": f"line-{number}",
                "provider": "openai",
                "period_start": start,
                "period_end": end or start + timedelta(days=1),
                "amount": None if money is None else Decimal(money),
                "segment": FILE,
                "segment_row": number,
                "revision": 0,
                **told,
                **about,
            }
        )

    def page(self, start: datetime, end: datetime | None = None, **about: Any) -> None:
        """One result of a usage page, of model m."""
        number = len(self.pages)
        counts = {name: about.pop(name, 0) for name in CLASSES}
        self.pages.append(
            {
                "cell_hi": number,
                "cell_lo": number,
                "day": start.date(),
                "source": "usage-pages",
                "provider": "openai",
                "api": "openai_usage_completions",
                "period_start": start,
                "period_end": end or start + timedelta(days=1),
                "grouped_by": ["model"],
                "model": "m",
                "tenant": "unassigned",
                "provisional": False,
                "verdict": "PROVED",
                **counts,
                "input_total": sum(counts[name] for name in CLASSES[:5]),
                "output_total": sum(counts[name] for name in CLASSES[5:]),
                "leaf_shape": "",
                "segment": FILE,
                "segment_row": number,
                "revision": 0,
                **about,
            }
        )

    def rows(self, order: Sequence[int] | None = None) -> dict[str, pl.DataFrame]:
        """Table -> its rows, priced; `order` shuffles the lines. Our side is what `ours` holds, if it holds any."""
        lines = [self.lines[place] for place in order] if order else self.lines
        told = {"invoice_line": lines, "usage_period": self.pages, "invoice_detail": self.details,
                "currency_rate": self.rates, "segment": self.files}  # fmt: skip
        return {**(self.ours or self.called()), **{table: _whole(table, rows) for table, rows in told.items()}}

    def called(self) -> dict[str, pl.DataFrame]:
        """Our side: attempts, readings, what they cost, and reports."""
        attempts = [
            {**_of("attempt", call), "model_served": call["model"], "route": "unassigned", "task": "unassigned",
             "revision": 0, **call["attempt"]}
            for call in self.calls
        ]  # fmt: skip
        readings = [{**_of("reading", call), "child": 0, "report": 0, "revision": 0} for call in self.calls]
        reports = [
            {**_of("usage_report", call), "child": 0, "report": 0, "revision": 0, "part": 0}
            for call in self.calls
            if "leaf_integers" in call
        ]
        told = {"attempt": attempts, "reading": readings, "usage_report": reports}
        made = {table: _whole(table, rows) for table, rows in told.items()}
        return {**made, "priced_amount": price_readings(made["reading"], self.book(), made["attempt"])}

    def weighed(self, order: Sequence[int] | None = None, now: datetime = LATER) -> Weighed:
        """What comparing it gives, without a lake: the rows are in memory."""
        books = Books({"openai": self.contract}, self.book(), self.key)
        return Weighed(months_compared(InMemory(self.rows(order)), books, now))

    def lake(self, order: Sequence[int] | None = None, into: Lake | None = None) -> Lake:
        """The lake with all of it, priced; `order` shuffles the lines."""
        lake = into or Lake.create(self.folder / f"lake{len(list(self.folder.glob('lake*')))}")
        if self.calls:
            attempts = [
                {**_of("attempt", call), "model_served": call["model"], "route": "unassigned", "task": "unassigned",
                 "revision": 0, **call["attempt"]}
                for call in self.calls
            ]  # fmt: skip
            lake.append("attempt", _frame("attempt", attempts))
            readings = [{**_of("reading", call), "child": 0, "report": 0, "revision": 0} for call in self.calls]
            lake.append("reading", _frame("reading", readings))
            refresh_prices(lake, self.book(), sorted({call["day"] for call in self.calls}))
        lines = [self.lines[place] for place in order] if order else self.lines
        told = {"invoice_line": lines, "usage_period": self.pages, "invoice_detail": self.details}
        for table, held in {**told, "currency_rate": self.rates}.items():
            if held:
                lake.append(table, _frame(table, held))
        return lake

    def book(self) -> PriceBook:
        """The prices of this world."""
        return _book(self.prices)

    def reconcile(self, now: datetime = LATER) -> tuple[InMemory, InvoiceResult]:
        """Reconcile it in memory: what a lake would hold then, and what was found."""
        tables = self.rows()
        books = Books({"openai": self.contract}, self.book(), self.key)
        results = months_compared(InMemory(tables), books, now)
        made = [rows(result) for result in results]
        for place, table in enumerate(("invoice_gap", "invoice_cause")):
            tables[table] = _whole(table, [row for each in made for row in each[place]])
        months = [(each.ledger.contract.provider, each.ledger.month, each.ledger.contract.zone) for each in results]
        found = [f for each in results for f in findings_of(each)] + list(of_details(InMemory(tables), months))
        about = tuple((each.ledger.month, each.ledger.contract.provider, str(each.ledger.against)) for each in results)
        ordered = tuple(sorted(found, key=lambda each: (each.period, each.code, each.finding_id)))
        counts = Counter(tables["invoice_gap"]["status"])
        return InMemory(tables), InvoiceResult(about, dict(counts), tables["invoice_cause"].height, ordered)

    def reconcile_in(self, lake: Lake, now: datetime = LATER) -> InvoiceResult:
        """Reconcile it in a lake."""
        return reconcile_invoices(lake, Books({"openai": self.contract}, self.book(), self.key), now)


@cache
def _book(text: str) -> PriceBook:
    """A price file as a book, read once."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "prices.toml"
        path.write_text(text, encoding="utf-8")
        return PriceBook([read_prices(path)])


def gaps(lake: Records, unit: str = "USD") -> pl.DataFrame:
    """The cells of a unit, in order of period."""
    rows = lake.scan("invoice_gap").filter(pl.col("unit") == unit).collect()
    return rows.sort("against", "period_start", "kind", "model", "token_class", nulls_last=True)


def causes(lake: Records, unit: str = "USD") -> dict[str, Decimal]:
    """Cause -> what it stands for."""
    rows = lake.scan("invoice_cause").filter(pl.col("unit") == unit).collect()
    out: dict[str, Decimal] = {}
    for cause, amount in rows.select("cause", "amount").iter_rows():
        out[cause] = out.get(cause, Decimal(0)) + amount
    return dict(sorted(out.items()))


def closes(lake: Records) -> bool:
    """Whether of every cell causes and residual add up to the gap, exactly."""
    summed = lake.scan("invoice_cause").group_by("cell").agg(parts=pl.col("amount").sum()).collect()
    cells = lake.scan("invoice_gap").collect().join(summed, on="cell", how="left")
    known = cells.filter(pl.col("gap").is_not_null())
    parts = known["parts"].fill_null(Decimal(0)) + known["residual"]
    return bool((parts == known["gap"]).all()) and set(summed["cell"]) <= set(cells["cell"])


def _of(table: str, row: Mapping[str, Any]) -> dict[str, Any]:
    names = polars_schema(table)
    return {name: value for name, value in row.items() if name in names}


def _whole(table: str, rows_: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    schema = polars_schema(table)
    return pl.DataFrame([{name: row.get(name) for name in schema} for row in rows_], schema=schema)


def _frame(table: str, rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    schema = polars_schema(table)
    names = [name for name in schema if any(name in row for row in rows)]
    return pl.DataFrame([{n: row.get(n) for n in names} for row in rows], schema={n: schema[n] for n in names})


def day(number: int) -> date:
    """A day of April 2026."""
    return date(2026, 4, number)
