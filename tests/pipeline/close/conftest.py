"""A small installation whose rows are put by hand and take the real road: reports, readings, prices, comparisons."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from weighbridge.pipeline.close.close import CloseResult, close_month
from weighbridge.pipeline.ingest.readings import refresh_readings
from weighbridge.pipeline.lake import Lake, polars_schema
from weighbridge.pipeline.price.book import PriceBook
from weighbridge.pipeline.price.frame import refresh_prices
from weighbridge.pipeline.price.keys import expand
from weighbridge.pipeline.price.row import Match, PriceRow
from weighbridge.pipeline.reconcile.reconcile import reconcile
from weighbridge.schemas.enumerations import ChargeCategory, FindingOrigin, Severity
from weighbridge.schemas.finding import Finding
from weighbridge.schemas.identity import key_id

KEY = bytes(range(32))
NOW = datetime(2026, 5, 20, 9, 30, tzinfo=UTC)
TENANT_A, TENANT_B = "t_00000000000000aa", "t_00000000000000bb"
FILE_A, FILE_B = "a" * 64, "b" * 64
GPT, MINI = "gpt-4.1", "gpt-4.1-mini"
Row = dict[str, Any]


def price_row(model: str, into: str, out: str, *, match: Match = Match.EQUALS, **more: Any) -> PriceRow:
    """A price row of provider openai, in US dollars: input (cache reads at a tenth) and output."""
    prices = {"input": Decimal(into), "cache_read": Decimal(into) / 10, "output": Decimal(out)}
    about: dict[str, Any] = {"currency": "USD", "origin": "contract", **more}
    return PriceRow(provider="openai", match=match, model=model, prices=expand(prices), **about)


def book(gpt: str = "2", mini: str = "0.4") -> PriceBook:
    """Two layers: a contract that names MINI by a prefix goes before the list, which names both exactly."""
    contract = [price_row("gpt-4.1-m", mini, "1.6", match=Match.PREFIX, valid_from=date(2026, 3, 1))]
    listed = [price_row(GPT, gpt, "8"), price_row(MINI, "9", "9")]
    return PriceBook([contract, listed])


@dataclass
class Office:
    """A lake, the folder of its closes and the prices it is priced with."""

    root: Path
    prices: PriceBook = field(default_factory=book)
    put: dict[str, list[Row]] = field(default_factory=dict)

    @property
    def lake(self) -> Lake:
        """The lake, with all that was put."""
        lake = Lake.create(self.root / "lake")
        for table in list(self.put):
            lake.append(table, pl.DataFrame(self.put.pop(table), schema=polars_schema(table)))
        return lake

    @property
    def packs(self) -> Path:
        """The folder of closes."""
        return self.root / "closes"

    def add(self, table: str, *rows: Mapping[str, Any]) -> None:
        """Put rows of a table; they are in the lake when it is looked at next."""
        self.put.setdefault(table, []).extend(dict(row) for row in rows)

    def attempt(self, number: int, day: str, **more: Any) -> None:
        """An attempt that an engine of our own counted: 100 tokens in, 20 out, unless it says otherwise."""
        row = {
            **key_of(number),
            "day": date.fromisoformat(day[:10]),
            "arrived_at": datetime.fromisoformat(day).replace(tzinfo=UTC),
            "source": "agent",
            "provider": "openai",
            "api": "openai_chat",
            "model_served": GPT,
            "tenant": TENANT_A,
            "task": "chat",
            "route": "main",
            "status": "succeeded",
            "input_computed": 100,
            "output_computed": 20,
            "usage_expected": True,
            "segment": FILE_A,
            "segment_row": number,
            "revision": 0,
        }
        self.add("attempt", {**row, **more})

    def report(self, number: int, day: str, into: int = 100, out: int = 20, cached: int = 0, **more: Any) -> None:
        """The usage report of an attempt."""
        paths = ["prompt_tokens", "completion_tokens", "total_tokens", "prompt_tokens_details.cached_tokens"]
        row = {
            **key_of(number),
            "day": date.fromisoformat(day[:10]),
            "source": "agent",
            "child": 0,
            "report": 0,
            "part": 0,
            "part_kind": "whole",
            "provider": "openai",
            "api": "openai_chat",
            "model": GPT,
            "ended": "complete",
            "leaf_shape": " ".join(f"usage.{path}" for path in paths),
            "leaf_integers": [into, out, into + out, cached],
            "leaf_texts": [None] * 4,
            "segment": FILE_A,
            "segment_row": number,
            "revision": 0,
        }
        self.add("usage_report", {**row, **more})

    def both(self, number: int, day: str, into: int = 100, out: int = 20, cached: int = 0, **more: Any) -> None:
        """An attempt and a report that agrees with it; `more` may name model, tenant, task and segment."""
        model = more.pop("model", GPT)
        segment = more.pop("segment", FILE_A)
        self.attempt(number, day, model_served=model, input_computed=into, output_computed=out, segment=segment, **more)
        self.report(number, day, into, out, cached, model=model, segment=segment)

    def file(self, segment: str) -> None:
        """A file that was taken in."""
        counts = {"rows_in": 9, "rows_out": 9, "rows_quarantined": 0, "rows_duplicate": 0}
        about = {"importer": "segment", "name": f"{segment[:4]}.jsonl", "bytes": 900, "end": "complete"}
        self.add("segment", {"segment": segment, **about, **counts, "schema_version": 1})

    def find(self, code: str, severity: Severity, period: str = "2026-03", **more: Any) -> str:
        """A finding, and its id."""
        about: dict[str, Any] = {"rows": 1, "cure": "Look.", "subject": {"what": code}, **more}
        finding = Finding(code=code, severity=severity, period=period, **about)
        self.add("finding", finding.row())
        return finding.finding_id

    def read(self) -> None:
        """Read and price every report anew."""
        lake = self.lake
        days = lake.days("usage_report")
        refresh_readings(lake, days)
        refresh_prices(lake, self.prices, days)

    def weigh(self) -> None:
        """Read, price and reconcile everything."""
        self.read()
        reconcile(self.lake, key_id=key_id(KEY))

    def close(self, period: str = "2026-03", **more: Any) -> CloseResult:
        """Close a month."""
        options: dict[str, Any] = {"by": "finops", "now": NOW, "key": KEY, "book": self.prices, **more}
        return close_month(self.lake, period=period, packs=self.packs, **options)

    def pack(self, period: str = "2026-03") -> Path:
        """The folder of a pack."""
        return self.packs / period

    def copy(self, root: Path) -> Office:
        """The same installation elsewhere."""
        assert self.lake
        shutil.copytree(self.root, root)
        return Office(root, self.prices)


def key_of(number: int) -> Row:
    """The key of the attempt called `number`."""
    return {"attempt_hi": 0x0195_0000_0000_7000 + number, "attempt_lo": -number}


def contents(folder: Path) -> dict[str, bytes]:
    """Path -> bytes of every file below a folder."""
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def fill(office: Office) -> None:
    """March 2026 with something of everything, and some of April.

    Openai, GPT unless said otherwise, 100 tokens in and 20 out:
      1, 2, 3   tenant A; 2 had 40 cached; 3 is MINI
      4, 5      tenant B, task batch; 5 has no attempt record
      6         on 31 March, its report booked on 1 April
      7         two reports of it, revised
      8, 9      in April
    """
    office.file(FILE_A)
    office.file(FILE_B)
    office.both(1, "2026-03-02T10:00:00")
    office.both(2, "2026-03-02T11:00:00", cached=40)
    office.both(3, "2026-03-15T11:00:00", model=MINI, segment=FILE_B)
    office.both(4, "2026-03-15T12:00:00", 300, 50, tenant=TENANT_B, task="batch")
    office.report(5, "2026-03-15T13:00:00", 30, 5)
    office.attempt(6, "2026-03-31T23:59:00")
    office.report(6, "2026-04-01T00:00:00")
    office.attempt(7, "2026-03-20T10:00:00", input_computed=71, output_computed=10)
    office.report(7, "2026-03-20T10:00:00", 70, 10)
    office.report(7, "2026-03-20T10:00:00", 71, 10, revision=1, segment_row=70)
    office.both(8, "2026-04-02T10:00:00")
    office.both(9, "2026-04-03T10:00:00", 200, 40, model=MINI, tenant=TENANT_B)
    lost = {"source": "agent", "reason": "buffer_full", "attempts": 1, "segment": FILE_A, "segment_row": 99}
    spell = {"began_at": datetime(2026, 3, 31, 23, tzinfo=UTC), "ended_at": datetime(2026, 4, 1, 1, tzinfo=UTC)}
    office.add("gap", {"day": date(2026, 4, 1), **lost, **spell})
    office.add("foreign_id", {**key_of(1), "day": date(2026, 3, 2), "source": "agent", **_FOREIGN, "segment": FILE_A})
    office.add(
        "quarantine",
        {"segment": FILE_B, "line": 3, "day": date(2026, 3, 15), "source": "agent", "importer": "x", "reason": "type"},
    )
    line = {"provider": "openai", "invoice_id": "inv-1", "line_id": "1", "category": str(ChargeCategory.USAGE)}
    span = {"period_start": datetime(2026, 3, 1, tzinfo=UTC), "period_end": datetime(2026, 4, 1, tzinfo=UTC)}
    office.add("invoice_line", {**line, **span, "amount": Decimal("1.25"), "currency": "USD", "revision": 0})
    waived = office.find("usage_drift", Severity.WARNING, origin=FindingOrigin.BASELINE)
    change = {"finding_id": waived, "change": 0, "state": "waived", "changed_by": "finops", "reason": "CANARY in words"}
    office.add("finding_status", {**change, "changed_at": NOW, "expires_on": date(2026, 6, 1)})
    office.weigh()


_FOREIGN = {"kind": "provider_response_id", "value": "chatcmpl-CANARYID"}


@pytest.fixture
def office(tmp_path: Path) -> Office:
    """An empty installation."""
    return Office(tmp_path / "office")


@pytest.fixture(scope="session")
def filled_once(tmp_path_factory: pytest.TempPathFactory) -> Office:
    """March and April, weighed; only to be copied."""
    made = Office(tmp_path_factory.mktemp("filled") / "office")
    fill(made)
    return made


@pytest.fixture(scope="session")
def closed_once(filled_once: Office, tmp_path_factory: pytest.TempPathFactory) -> Office:
    """The same with March closed; only to be copied."""
    made = filled_once.copy(tmp_path_factory.mktemp("closed") / "office")
    done = made.close()
    assert done.closed, done.refused
    return made


@pytest.fixture
def filled(filled_once: Office, tmp_path: Path) -> Office:
    """March and April, weighed."""
    return filled_once.copy(tmp_path / "filled")


@pytest.fixture
def closed(closed_once: Office, tmp_path: Path) -> Office:
    """March closed, April open."""
    return closed_once.copy(tmp_path / "closed")


def digest(folder: Path) -> str:
    """One number for everything below a folder."""
    return hashlib.sha256(repr(sorted(contents(folder).items())).encode()).hexdigest()
